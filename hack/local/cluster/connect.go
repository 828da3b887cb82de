// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// broken lists the reasons in the Ready condition of Connections that need new tokens.
var broken = []string{
	v1alpha1.ReasonTokenExpired, v1alpha1.ReasonRevoked, v1alpha1.ReasonCredentialsNotFound, v1alpha1.ReasonCredentialsInvalid,
}

// connect creates the connection to the platform's demo account and waits until Herald can publish to it. If the
// platform rejects its tokens, connect replaces them once, as when a user reconnects. A connection that a user has
// disabled remains disabled.
func connect(ctx context.Context, c client.Client, platform v1alpha1.Platform, grant Grant) error {
	key := client.ObjectKey{Namespace: DemoNamespace, Name: ConnectionName(platform)}
	connection := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := c.Get(ctx, key, connection)
	if apierrors.IsNotFound(err) {
		err = firstConnect(ctx, c, connection, platform, grant)
	}
	if err != nil {
		return err
	}
	if connection.Spec.Disabled {
		return nil
	}
	asked, renewed := "", false
	return Until(ctx, describe(connection)+" to be ready", func() (bool, error) {
		if err := c.Get(ctx, key, connection); err != nil {
			return false, err
		}
		if asked == "" {
			asked, err = requestProbe(ctx, c, connection)
			return false, err
		}
		if connection.Status.LastHandledProbe != asked {
			return false, errors.New("the manager has not looked at it yet")
		}
		ok, why := isReady(connection, connection.Status.Conditions)
		if ok {
			return true, nil
		}
		asked = ""
		ready := meta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
		if ready != nil && slices.Contains(broken, ready.Reason) && !renewed {
			renewed = true
			return false, reconnect(ctx, c, connection, platform, grant)
		}
		return false, why
	})
}

// requestProbe requests an immediate probe of the connection, and returns the value that the manager will copy to the
// status. The status may be hours old, and the tokens may have expired since then.
func requestProbe(ctx context.Context, c client.Client, connection *v1alpha1.Connection) (string, error) {
	asked := rand.Text()
	changed := connection.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.ProbeAnnotation, asked)
	if err := c.Patch(ctx, changed, client.MergeFrom(connection), client.FieldOwner(fieldOwner)); err != nil {
		return "", err
	}
	return asked, nil
}

func firstConnect(ctx context.Context, c client.Client, connection *v1alpha1.Connection, platform v1alpha1.Platform, grant Grant) error {
	account, err := grant(ctx, platform)
	if err != nil {
		return err
	}
	return CreateConnection(ctx, c, connection, platform, account)
}

// demoServer is the server name in Mastodon accounts. Requests go to the sandbox instead.
const demoServer = "https://mastodon.example"

// CreateConnection creates a named connection to an account, and the Secret with its tokens. It leaves existing objects
// unchanged.
func CreateConnection(ctx context.Context, c client.Client, connection *v1alpha1.Connection, platform v1alpha1.Platform, account Account) error {
	connection.Spec = v1alpha1.ConnectionSpec{
		Platform:             platform,
		AccountID:            accountID(platform, account),
		CredentialsSecretRef: v1alpha1.LocalReference{Name: credentialsName(connection)},
	}
	if platform == v1alpha1.PlatformMastodon {
		connection.Spec.Server = demoServer
	}
	if err := createMissing(ctx, c, newCredentials(connection, account)); err != nil {
		return err
	}
	return createMissing(ctx, c, connection)
}

// credentialsName returns the name of a demo connection's Secret.
func credentialsName(connection *v1alpha1.Connection) string { return connection.Name + "-credentials" }

// accountID returns a demo account's id as its connection contains it.
func accountID(platform v1alpha1.Platform, account Account) string {
	if platform == v1alpha1.PlatformMastodon {
		return account.ID + "@" + strings.TrimPrefix(demoServer, "https://")
	}
	return account.ID
}

// reconnect replaces tokens that the platform rejects. If the demo account has changed, it replaces the connection as
// well: Bluesky's own server takes the sandbox's place once it is installed.
func reconnect(ctx context.Context, c client.Client, connection *v1alpha1.Connection, platform v1alpha1.Platform, grant Grant) error {
	account, err := grant(ctx, platform)
	if err != nil {
		return err
	}
	if accountID(platform, account) != connection.Spec.AccountID {
		return replace(ctx, c, connection, platform, account)
	}
	fresh := newCredentials(connection, account)
	err = c.Update(ctx, fresh, client.FieldOwner(fieldOwner))
	if apierrors.IsNotFound(err) {
		return createMissing(ctx, c, fresh)
	}
	return err
}

// replace recreates a connection under the same name for another account. It deletes only the demo's Secret, not one
// that a user has put in its place.
func replace(ctx context.Context, c client.Client, connection *v1alpha1.Connection, platform v1alpha1.Platform, account Account) error {
	old := connection.DeepCopy()
	demo := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: credentialsName(old)}}
	for _, object := range []client.Object{old, demo} {
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			return err
		}
	}
	err := Until(ctx, describe(connection)+" to be deleted", func() (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(connection), old)
		return apierrors.IsNotFound(err), err
	})
	if err != nil {
		return err
	}
	fresh := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: connection.Namespace, Name: connection.Name}}
	return CreateConnection(ctx, c, fresh, platform, account)
}

func newCredentials(connection *v1alpha1.Connection, account Account) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: connection.Namespace, Name: connection.Spec.CredentialsSecretRef.Name},
		StringData: map[string]string{
			v1alpha1.CredentialsAccessToken:  account.AccessToken,
			v1alpha1.CredentialsRefreshToken: account.RefreshToken,
			v1alpha1.CredentialsExpiresAt:    account.ExpiresAt,
			v1alpha1.CredentialsScopes:       strings.Join(account.Scopes, " "),
		},
	}
}
