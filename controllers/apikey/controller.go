// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apikey activates API keys. It generates a token for each entry without a hash, stores it in a Secret, and
// publishes the token's hash for the apiserver.
//
// The token exists only in its Secret. The process may crash after each step: the Secret is created first and only
// once, and the status is always computed from the Secret.
package apikey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
)

// The role has no rule for Secrets: the Team's role binding grants access only to the Secrets of team namespaces. The
// finalizers permission is needed for blocking owner references of Secrets in clusters with the admission plugin
// OwnerReferencesPermissionEnforcement.
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys/finalizers,verbs=update
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// forbiddenPause is the requeue delay after access to a namespace's Secrets was denied: its Team may not have been
// reconciled yet.
const forbiddenPause = 15 * time.Second

// Options configures the Reconciler. Client, APIReader, Owned and Clock are required.
type Options struct {
	// Client reads from the cache and writes to the API server. APIReader reads Secrets from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	// Owned reports whether a team owns a namespace. No token is created in other namespaces.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Namespaces are the watched namespaces; empty means all.
	Namespaces configv1alpha1.Namespaces
	// Events records the events of keys. If nil, none are emitted.
	Events events.EventRecorder
	// MaxConcurrentReconciles limits the keys reconciled concurrently (default 1).
	MaxConcurrentReconciles int
}

// Reconciler reconciles API keys.
type Reconciler struct {
	Options

	status conditions.Reporter
}

// New returns a Reconciler. It returns an error if a required option is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Owned == nil || o.Clock == nil {
		return nil, errors.New("the API key reconciler needs Client, APIReader, Owned and Clock")
	}
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	return &Reconciler{Options: o, status: conditions.Reporter{
		Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Reconcile",
		Normal: []string{v1alpha1.ReasonActive, v1alpha1.ReasonKeyExpired, v1alpha1.ReasonKeyRevoked},
	}}, nil
}

// SetupWithManager reconciles keys when their spec changes, when a Team acquires the namespace, and when they expire.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.APIKey{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.Namespaces, r.Client, func() client.ObjectList { return &v1alpha1.APIKeyList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.MaxConcurrentReconciles, ReconciliationTimeout: pacing.APIKeyTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "apikey")).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the API key controller: %w", err)
	}
	return nil
}

// Reconcile activates or revokes one key.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var key v1alpha1.APIKey
	if err := r.Client.Get(ctx, req.NamespacedName, &key); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !key.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	before := key.Status.DeepCopy()
	trouble, err := r.sync(ctx, &key)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	conditions.Apply(&key.Status.Conditions, summarize(&key, trouble, now), key.Generation, now)
	key.Status.ObservedGeneration = key.Generation
	if err := r.status.Report(ctx, &key, before, &key.Status); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.status.RequeueAfter(&key, nextCheck(&key, trouble, now))}, nil
}

// sync updates status.tokens. It returns a refusal if a token cannot be activated; errors are retried.
func (r *Reconciler) sync(ctx context.Context, key *v1alpha1.APIKey) (*refusal, error) {
	if err := r.revoke(ctx, key); err != nil || key.Spec.Revoked {
		return nil, err
	}
	if owned, err := r.Owned(ctx, key.Namespace); err != nil {
		return nil, err
	} else if !owned {
		return &refusal{noTeam: true}, nil
	}
	var first *refusal
	for _, token := range key.WantedTokens() {
		refused, err := r.activate(ctx, key, token)
		if err != nil {
			return nil, err
		}
		first = cmp.Or(first, refused)
	}
	return first, nil
}

func (r *Reconciler) activate(ctx context.Context, key *v1alpha1.APIKey, token v1alpha1.APIKeyToken) (*refusal, error) {
	switch {
	case key.Status.Token(token.Name) != nil:
		// The Secret may be gone: a user who has copied the token may delete it, and the token remains valid.
		return nil, nil //nolint:nilnil // neither a refusal nor an error is the good case
	case token.SHA256 != "":
		key.Status.Tokens = append(key.Status.Tokens, v1alpha1.APIKeyTokenStatus{Name: token.Name, CreatedAt: v1alpha1.NewTime(r.Clock.Now())})
		return nil, nil //nolint:nilnil // as above
	default:
		return r.issue(ctx, key, token.Name)
	}
}

// issue generates one of a key's tokens, or finds the one that an earlier reconciliation generated.
func (r *Reconciler) issue(ctx context.Context, key *v1alpha1.APIKey, name string) (*refusal, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace,
			Name:      secretName(key, name),
			Labels:    map[string]string{"app.kubernetes.io/managed-by": "herald"},
		},
		Data: map[string][]byte{v1alpha1.APIKeyTokenKey: []byte(apitoken.New(key.Namespace, key.Name))},
	}
	if err := controllerutil.SetControllerReference(key, secret, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("cannot make the key the owner of its Secret: %w", err)
	}
	err := r.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = r.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return refusedByAPI(err, secret), nil
	case err != nil:
		return nil, fmt.Errorf("cannot create Secret %q with the token: %w", secret.Name, err)
	}
	return adopt(key, name, secret), nil
}

// revoke removes the tokens that the spec no longer lists, and deletes their Secrets.
func (r *Reconciler) revoke(ctx context.Context, key *v1alpha1.APIKey) error {
	for _, name := range revoked(key) {
		err := credentials.DeleteControlled(ctx, r.APIReader, r.Client, key, secretName(key, name))
		// The token is revoked even without access to Secrets.
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		key.Status.Tokens = slices.DeleteFunc(key.Status.Tokens, func(t v1alpha1.APIKeyTokenStatus) bool { return t.Name == name })
	}
	return nil
}

func refusedByAPI(err error, secret *corev1.Secret) *refusal {
	if apierrors.IsForbidden(err) {
		return &refusal{
			message:    fmt.Sprintf("Herald has no access to Secrets in namespace %q; check that a Team owns it and is ready", secret.Namespace),
			retryAfter: forbiddenPause,
		}
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return &refusal{message: fmt.Sprintf("Secret %q cannot be created: %s: %s; create an APIKey with another name", secret.Name, cause.Field, cause.Message)}
	}
	return &refusal{message: fmt.Sprintf("Secret %q cannot be created; create an APIKey with another name", secret.Name)}
}
