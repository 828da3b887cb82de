// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
)

const demoX = "demo-x"

// manager stands in for the manager: created objects become ready, and an APIKey gets its Secret. A connection is ready
// only while its token is goodToken.
type manager struct {
	goodToken string
	// refusal is the reason in the Ready condition of a connection with another token.
	refusal string
}

func (m manager) observe(ctx context.Context, c client.Client, object client.Object) error {
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: object.GetGeneration(),
	}
	switch o := object.(type) {
	case *v1alpha1.Team:
		o.Status.Conditions = []metav1.Condition{ready}
	case *v1alpha1.APIKey:
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "key-token"}}
		secret.Data = map[string][]byte{v1alpha1.APIKeyTokenKey: []byte("hrld_secret")}
		if err := client.IgnoreAlreadyExists(c.Create(ctx, secret)); err != nil {
			return err
		}
		o.Status.Tokens = []v1alpha1.APIKeyTokenStatus{{Name: v1alpha1.DefaultTokenName, SecretRef: &v1alpha1.LocalReference{Name: secret.Name}}}
		o.Status.Conditions = []metav1.Condition{ready}
	case *v1alpha1.Connection:
		if o.Annotations[v1alpha1.ProbeAnnotation] == o.Status.LastHandledProbe {
			return nil
		}
		var secret corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.CredentialsSecretRef.Name}, &secret); err != nil {
			return err
		}
		token := secret.StringData[v1alpha1.CredentialsAccessToken] + string(secret.Data[v1alpha1.CredentialsAccessToken])
		o.Status.LastHandledProbe = o.Annotations[v1alpha1.ProbeAnnotation]
		if token != m.goodToken {
			ready.Status, ready.Reason = metav1.ConditionFalse, m.refusal
		}
		o.Status.Conditions = []metav1.Condition{ready}
	}
	return nil
}

// newCluster returns a client whose reads make the manager reconcile the resource.
func newCluster(t *testing.T, m manager, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, object, options...); err != nil {
				return err
			}
			return m.observe(ctx, c, object)
		},
	}).Build()
}

func connection(disabled bool) *v1alpha1.Connection {
	return &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: DemoNamespace, Name: demoX},
		Spec: v1alpha1.ConnectionSpec{
			Platform: v1alpha1.PlatformX, AccountID: "1", Disabled: disabled,
			CredentialsSecretRef: v1alpha1.LocalReference{Name: "own-secret"},
		},
	}
}

// readyBefore returns a connection that was ready before the restart.
func readyBefore() *v1alpha1.Connection {
	c := connection(false)
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}}
	c.Status.LastHandledProbe = "of the run before"
	return c
}

func ofAccount(id string) *v1alpha1.Connection {
	c := connection(false)
	c.Spec.AccountID = id
	return c
}

func credentials(name, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: DemoNamespace, Name: name},
		Data:       map[string][]byte{v1alpha1.CredentialsAccessToken: []byte(token)},
	}
}

func TestDemo(t *testing.T) {
	tests := map[string]struct {
		reason  string
		manager manager
		there   []client.Object
		grants  int
		secret  string
		token   string
		// intact is a Secret that is not deleted.
		intact string
	}{
		"the first run": {
			reason:  "all objects are created with the account's tokens",
			manager: manager{goodToken: "granted"}, grants: 1, secret: demoX + "-credentials", token: "granted",
		},
		"a later run": {
			reason:  "the manager may have renewed the token: overwriting it would disconnect the account",
			manager: manager{goodToken: "renewed"}, there: []client.Object{connection(false), credentials("own-secret", "renewed")},
			secret: "own-secret", token: "renewed",
		},
		"a killed first run": {
			reason:  "the Secret exists without its connection, and the manager may have renewed its token",
			manager: manager{goodToken: "kept"}, there: []client.Object{credentials(demoX+"-credentials", "kept")},
			grants: 1, secret: demoX + "-credentials", token: "kept",
		},
		"tokens were revoked": {
			reason:  "a revoked token is replaced",
			manager: manager{goodToken: "granted", refusal: v1alpha1.ReasonRevoked},
			there:   []client.Object{connection(false), credentials("own-secret", "dead")},
			grants:  1, secret: "own-secret", token: "granted",
		},
		"tokens expired while Herald was stopped": {
			reason:  "the status from the last run may be outdated: only a new probe is reliable",
			manager: manager{goodToken: "granted", refusal: v1alpha1.ReasonTokenExpired},
			there:   []client.Object{readyBefore(), credentials("own-secret", "dead")},
			grants:  1, secret: "own-secret", token: "granted",
		},
		"another account": {
			reason:  "Bluesky's own server was installed after the first run, and has an account of its own",
			manager: manager{goodToken: "granted", refusal: v1alpha1.ReasonRevoked},
			there:   []client.Object{ofAccount("0"), credentials("own-secret", "of a user"), credentials(demoX+"-credentials", "of the sandbox")},
			grants:  1, secret: demoX + "-credentials", token: "granted", intact: "own-secret",
		},
		"a user disabled it": {
			reason:  "a user's change is permanent",
			manager: manager{goodToken: "any"}, there: []client.Object{connection(true), credentials("own-secret", "old")},
			secret: "own-secret", token: "old",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.manager, tc.there...)
			grants := 0
			grant := func(context.Context, v1alpha1.Platform) (Account, error) {
				grants++
				return Account{ID: "1", AccessToken: "granted", RefreshToken: "r", Scopes: []string{"a", "b"}, ExpiresAt: "2030-01-01T00:00:00Z"}, nil
			}
			token, err := Demo(t.Context(), c, []v1alpha1.Platform{v1alpha1.PlatformX}, grant)
			if err != nil || token != "hrld_secret" {
				t.Fatalf("the API key's token is %q, %v (%s)", token, err, tc.reason)
			}
			if grants != tc.grants {
				t.Errorf("requested tokens %d times, want %d: %s", grants, tc.grants, tc.reason)
			}
			var connection v1alpha1.Connection
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: DemoNamespace, Name: demoX}, &connection); err != nil || connection.Spec.AccountID != "1" {
				t.Errorf("the connection is %+v, %v: %s", connection.Spec, err, tc.reason)
			}
			var secret corev1.Secret
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: DemoNamespace, Name: tc.secret}, &secret); err != nil {
				t.Fatal(err)
			}
			got := secret.StringData[v1alpha1.CredentialsAccessToken]
			if got == "" {
				got = string(secret.Data[v1alpha1.CredentialsAccessToken])
			}
			if got != tc.token {
				t.Errorf("the Secret has the token %q, want %q: %s", got, tc.token, tc.reason)
			}
			if tc.intact != "" {
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: DemoNamespace, Name: tc.intact}, &secret); err != nil {
					t.Errorf("%v: %s", err, tc.reason)
				}
			}
		})
	}
}

// TestDemoBindsTheLinkUser checks that the user of the one-time link has all permissions in the demo team.
func TestDemoBindsTheLinkUser(t *testing.T) {
	c := newCluster(t, manager{})
	if _, err := Demo(t.Context(), c, nil, nil); err != nil {
		t.Fatal(err)
	}
	var bindings rbacv1.RoleBindingList
	if err := c.List(t.Context(), &bindings, client.InNamespace(DemoNamespace)); err != nil || len(bindings.Items) != 1 {
		t.Fatalf("got %d bindings, %v", len(bindings.Items), err)
	}
	if b := bindings.Items[0]; b.RoleRef.Name != "herald-admin" || b.Subjects[0].Kind != rbacv1.UserKind || b.Subjects[0].Name != "herald:link" {
		t.Errorf("got %+v", b)
	}
}

func TestDemoReportsWhyItIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// New tokens would not help in a real outage, so none are requested.
		c := newCluster(t, manager{goodToken: "x", refusal: v1alpha1.ReasonPlatformUnavailable}, connection(false), credentials("own-secret", "y"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Demo(ctx, c, []v1alpha1.Platform{v1alpha1.PlatformX}, func(context.Context, v1alpha1.Platform) (Account, error) {
			return Account{}, errors.New("no tokens were to be asked for")
		})
		if err == nil || !strings.Contains(err.Error(), "Connection herald-demo/demo-x") || !strings.Contains(err.Error(), v1alpha1.ReasonPlatformUnavailable) {
			t.Errorf("got %v, want an error with the object's name and condition", err)
		}
	})
}
