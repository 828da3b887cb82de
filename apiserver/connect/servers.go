// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

const (
	// serversField is the key of the apps in the Secret's data.
	serversField = "serverApps"
	// maxServers and maxServersBytes limit the stored apps. The Secret also contains the session keys, and the
	// apiserver may write 64 KiB (config/rbac/policies.yaml): without a limit in bytes, servers that choose long names
	// and ids could prevent the keys from being replaced. A dropped app is registered again for the next connection to
	// its server.
	maxServers      = 40
	maxServersBytes = 24 << 10
	// storeTries limits the attempts to write the Secret while others change it.
	storeTries = 20
)

// SecretUpdater reads and updates the Secrets of a namespace.
type SecretUpdater interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
	Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error)
}

// ServerApps stores Herald's app on each server, in the Secret that the replicas share.
type ServerApps struct {
	secrets SecretUpdater
	name    string
	clock   clock.PassiveClock
}

// NewServerApps returns the apps in a Secret, which must exist.
func NewServerApps(secrets SecretUpdater, name string, c clock.PassiveClock) *ServerApps {
	return &ServerApps{secrets: secrets, name: name, clock: c}
}

// registration is a stored app.
type registration struct {
	platforms.ServerApp

	RegisteredAt time.Time `json:"registeredAt"`
	// Used is true if an account on the server was connected. Anyone can make up servers, which then have no connected
	// accounts.
	Used bool `json:"used,omitzero"`
}

// find returns the app on a server, or a zero app if there is none.
func (a *ServerApps) find(ctx context.Context, server string) (platforms.ServerApp, error) {
	_, stored, err := a.read(ctx)
	return stored[server].ServerApp, err
}

func (a *ServerApps) read(ctx context.Context) (*corev1.Secret, map[string]registration, error) {
	secret, err := a.secrets.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("read the Secret %s: %w", a.name, err)
	}
	stored := map[string]registration{}
	if text := secret.Data[serversField]; len(text) > 0 && json.Unmarshal(text, &stored) != nil {
		// A decoder's error may contain part of the text, which is secret.
		return nil, nil, fmt.Errorf("the key %q of the Secret %s does not contain Herald's JSON; remove that key", serversField, a.name)
	}
	if stored == nil { // the text is null
		stored = map[string]registration{}
	}
	return secret, stored, nil
}

// replace stores the app on a server in place of the known one. If another process has already replaced the known app,
// replace returns that process's app and discards this one: there is one app for each server.
func (a *ServerApps) replace(ctx context.Context, server string, known, app platforms.ServerApp) (platforms.ServerApp, error) {
	current := app
	err := a.update(ctx, func(stored map[string]registration) bool {
		current = app
		if now := stored[server].ServerApp; now != known && now.RedirectURI == app.RedirectURI && now.Scopes == app.Scopes {
			current = now
			return false
		}
		stored[server] = registration{app, a.now(), stored[server].Used}
		return true
	})
	return current, err
}

// markUsed records that an account was connected with the app on a server. It stores the app again if it was dropped in
// the meantime.
func (a *ServerApps) markUsed(ctx context.Context, server string, app platforms.ServerApp) error {
	return a.update(ctx, func(stored map[string]registration) bool {
		current, ok := stored[server]
		if !ok {
			current = registration{ServerApp: app, RegisteredAt: a.now()}
		}
		changed := !current.Used
		current.Used = true
		stored[server] = current
		return changed
	})
}

func (a *ServerApps) now() time.Time { return a.clock.Now().UTC().Truncate(time.Second) }

// update changes the stored apps. change reports whether it changed them, and is called again after a conflict.
func (a *ServerApps) update(ctx context.Context, change func(map[string]registration) bool) error {
	err := errors.New("no attempt was made")
	for range storeTries {
		var secret *corev1.Secret
		var stored map[string]registration
		if secret, stored, err = a.read(ctx); err != nil || !change(stored) {
			return err
		}
		if err = a.write(ctx, secret, stored); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write the Secret %s: %w", a.name, err)
	}
	return nil
}

// write drops the apps that exceed the limits: first those without accounts, then the oldest.
func (a *ServerApps) write(ctx context.Context, secret *corev1.Secret, stored map[string]registration) error {
	text, err := json.Marshal(stored)
	for err == nil && (len(stored) > maxServers || len(text) > maxServersBytes) {
		delete(stored, slices.MinFunc(slices.Collect(maps.Keys(stored)), func(x, y string) int {
			switch first, second := stored[x], stored[y]; {
			case first.Used && !second.Used:
				return 1
			case second.Used && !first.Used:
				return -1
			default:
				return cmp.Or(first.RegisteredAt.Compare(second.RegisteredAt), cmp.Compare(x, y))
			}
		}))
		text, err = json.Marshal(stored)
	}
	if err != nil {
		return err
	}
	secret = secret.DeepCopy()
	secret.Data = maps.Clone(secret.Data)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[serversField] = text
	_, err = a.secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldOwner})
	return err
}

// fieldOwner is the field manager of writes to the Secret.
const fieldOwner = "herald-apiserver"

// NeedsServer reports whether users choose the server of a platform's accounts.
func (s *Service) NeedsServer(platform v1alpha1.Platform) bool {
	_, ok := s.Platforms[platform].(platforms.ServerConnector)
	return ok
}

// register sets a flow's server, which is the connection's or else the one that the user typed, and Herald's app there.
// It does nothing on a platform without servers to choose.
func (s *Service) register(ctx context.Context, f *flow, typed string) error {
	platform, ok := s.Platforms[f.Platform].(platforms.ServerConnector)
	if !ok {
		return nil
	}
	var err error
	if f.Server == "" {
		if f.Server, err = platform.ServerURL(typed); err != nil {
			return s.explain(ctx, f, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	known, err := s.Servers.find(ctx, f.Server)
	if err != nil {
		return err
	}
	app, err := platform.Register(ctx, f.Server, platforms.Site{URL: s.SiteURL, RedirectURI: s.redirect(f)}, known)
	if err != nil {
		return s.explain(ctx, f, err)
	}
	if app != known {
		if app, err = s.Servers.replace(ctx, f.Server, known, app); err != nil {
			return err
		}
		s.Log.InfoContext(ctx, "Herald has an app on a server", "person", f.Person, "namespace", f.Space, "platform", f.Platform, "server", f.Server)
	}
	f.App = app
	if !app.PKCE {
		f.Verifier = ""
	}
	return nil
}

// markAppUsed records that an account was connected with the app of a flow. The account works even if this fails.
func (s *Service) markAppUsed(ctx context.Context, f *flow) {
	if f.Server == "" {
		return
	}
	if err := s.Servers.markUsed(ctx, f.Server, f.App); err != nil {
		s.Log.WarnContext(ctx, "The app on a server may be registered again", "server", f.Server, "error", err)
	}
}
