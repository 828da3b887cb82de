// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

// tokenSaver stores renewed tokens in their working copies. A renewal may have spent the previous token, so the renewed
// one is kept in memory and in the spool until it is stored: by an examination, by the flusher, or by the next process.
type tokenSaver struct {
	store  *credentials.Store
	spool  *credentials.Spool
	reader client.Reader
	clock  clock.Clock
	locks  *keyedLock
	// renewed and grace are Options.Renewed and Options.Grace.
	renewed func(old, renewed credentials.Token)
	grace   time.Duration

	// unsaved holds renewed tokens that could not be stored yet, by the name of their working copy.
	unsaved sync.Map
	// inherited are an earlier process's unsaved tokens. inheritedAll is false while some could not be read.
	inherited    []unsaved
	inheritedAll bool
	// stopping is set when the manager is shutting down.
	stopping atomic.Bool
}

// newTokenSaver returns a tokenSaver with the tokens from the spool.
func newTokenSaver(o *Options, locks *keyedLock) *tokenSaver {
	s := &tokenSaver{store: o.Store, spool: o.Spool, reader: o.APIReader, clock: o.Clock, locks: locks, renewed: o.Renewed, grace: o.Grace}
	s.inherited, s.inheritedAll = s.loadSpooled()
	return s
}

type unsaved struct {
	conn    *v1alpha1.Connection
	renewal credentials.Renewal
	// from is the fingerprint of the token that was exchanged.
	from string
	// inherited is true for a token from an earlier process. Only its sealed form is known.
	inherited bool
}

func workingKey(conn *v1alpha1.Connection) types.NamespacedName {
	return types.NamespacedName{Namespace: conn.Namespace, Name: credentials.WorkingName(conn)}
}

// save stores a renewed token before its use. While the API server is unavailable, it keeps the token in memory.
func (s *tokenSaver) save(ctx context.Context, pending unsaved) (credentials.Credentials, error) {
	s.unsaved.Store(workingKey(pending.conn), pending)
	s.seal(ctx, pending)
	within := saveTimeout
	if s.stopping.Load() {
		within = max(within, s.grace) // there is no next examination
	}
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	stored, err := s.write(saving, pending)
	if err != nil && credentials.ReasonOf(err) == credentials.Unavailable {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token is not stored yet; if this process exits before then without a copy in the spool, the account must be reconnected")
		return credentials.Credentials{}, err
	}
	s.discard(ctx, workingKey(pending.conn), credentials.SpoolAccountOf(pending.conn))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token cannot be stored; the account may need to be reconnected")
	}
	return stored, err
}

// write stores a renewed token. After a conflict it writes again, unless the working copy now holds another token,
// which then takes precedence. A token from an earlier process is not stored if the copy is gone.
func (s *tokenSaver) write(ctx context.Context, pending unsaved) (credentials.Credentials, error) {
	renewal := pending.renewal
	var err error
	if pending.inherited {
		renewal.Before, err = s.store.Working(ctx, pending.conn)
		if credentials.ReasonOf(err) == credentials.NotFound {
			return credentials.Credentials{}, nil // the account was disconnected
		}
		if err != nil || renewal.Before.Token.Fingerprint() != pending.from {
			return renewal.Before, err
		}
	}
	old := renewal.Before.Token
	for range maxConflicts {
		var version string
		if version, err = s.store.Save(ctx, pending.conn, renewal); err == nil {
			if s.renewed != nil {
				s.renewed(old, renewal.Token)
			}
			return s.asStored(ctx, pending.conn, renewal.Token, version), nil
		}
		if credentials.ReasonOf(err) != credentials.Conflict {
			return credentials.Credentials{}, err
		}
		found, loadErr := s.store.Working(ctx, pending.conn)
		if loadErr != nil {
			return credentials.Credentials{}, loadErr
		}
		if found.Token.Fingerprint() != pending.from {
			return found, nil
		}
		renewal.Before = found
	}
	return credentials.Credentials{}, &credentials.Error{Reason: credentials.Unavailable, Message: err.Error(), Err: err}
}

// asStored reads the stored token back, with its renewal time. If that fails, it returns the token as written.
func (s *tokenSaver) asStored(ctx context.Context, conn *v1alpha1.Connection, token credentials.Token, version string) credentials.Credentials {
	if found, err := s.store.Working(ctx, conn); err == nil && found.Token.Access == token.Access {
		return found
	}
	return credentials.Credentials{Token: token, Version: version, RenewedAt: s.clock.Now()}
}

// rescue stores a token that could not be stored earlier, whether by an examination of one of the account's connections
// or by an earlier process. It returns the version of the working copy that holds the token, or "" if there was none or
// the copy holds another one.
func (s *tokenSaver) rescue(ctx context.Context, conn *v1alpha1.Connection) (version string, err error) {
	v, ok := s.unsaved.Load(workingKey(conn))
	pending, isOne := v.(unsaved)
	if !ok || !isOne {
		return "", nil
	}
	stored, err := s.save(ctx, pending)
	if err != nil || stored.Token.Access != pending.renewal.Token.Access {
		return "", err
	}
	return stored.Version, nil
}

// seal writes a renewed token to the spool before the first attempt to store it, in case the process exits in between.
// Only a renewal that spent a refresh token needs this; other tokens can be renewed again.
func (s *tokenSaver) seal(ctx context.Context, pending unsaved) {
	before, renewed := pending.renewal.Before.Token, pending.renewal.Token
	if pending.inherited || before.Refresh == "" || before.Refresh == renewed.Refresh {
		return
	}
	if err := s.spool.Save(credentials.UnsavedToken{Account: credentials.SpoolAccountOf(pending.conn), Token: renewed, From: pending.from}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "a renewed token is only in memory until it is stored; check the folder credentials.unsaved.directory")
	}
}

func (s *tokenSaver) discard(ctx context.Context, key types.NamespacedName, account credentials.SpoolAccount) {
	s.unsaved.Delete(key)
	if err := s.spool.Remove(account); err != nil {
		// The next start sees that the working copy holds the same token or a newer one.
		ctrl.LoggerFrom(ctx).Error(err, "cannot remove the spooled copy of a token; nothing is lost", "copy", key)
	}
}
