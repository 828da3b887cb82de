// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apikey activates API keys: it generates the tokens that came without a
// hash, hands each out in a Secret, and publishes its hash, by which the apiserver
// recognises it.
//
// A token exists in its Secret only. Each step may be the last one before a crash:
// the Secret is created first and once, and the status is always computed from what
// the Secret holds.
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

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/deadline"
	"github.com/herald-social/herald/internal/eventrecorder"
	"github.com/herald-social/herald/internal/logconstructor"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/retries"
)

// Secrets are not named here: the Team's role binding gives the manager the
// right to those of team namespaces only. The finalizers permission lets the
// owner references of Secrets block a deletion where the cluster insists on
// being asked (OwnerReferencesPermissionEnforcement).
//
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=apikeys/finalizers,verbs=update
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// forbiddenPause is how soon a namespace is tried again in which the manager may not
// use Secrets yet; its Team may still be on the way.
const forbiddenPause = 15 * time.Second

// Options is what the reconciler needs. Client, APIReader, Owned and Clock are required.
type Options struct {
	// Client reads from the cache and writes to the API server; APIReader reads
	// Secrets from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.PassiveClock
	// Owned reports whether a team owns a namespace. In others, no token is made.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Events takes the events of keys; nil emits none.
	Events events.EventRecorder
	// MaxConcurrentReconciles is how many keys are worked on at once (default 1).
	MaxConcurrentReconciles int
}

// Reconciler reconciles API keys.
type Reconciler struct {
	Options

	status conditions.Reporter
}

// New returns a reconciler; an error says which of the required options is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Owned == nil || o.Clock == nil {
		return nil, errors.New("the API key reconciler needs Client, APIReader, Owned and Clock")
	}
	o.Events = eventrecorder.New(o.Events, o.Client.Scheme(), o.Clock)
	return &Reconciler{Options: o, status: conditions.Reporter{
		Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Reconcile",
		Normal: []string{v1alpha1.ReasonActive, v1alpha1.ReasonKeyExpired, v1alpha1.ReasonKeyRevoked},
	}}, nil
}

// SetupWithManager adds the reconciler to a manager. A key is reconciled when its spec
// changes, when a Team comes to own its namespace, and when it expires.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.APIKey{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.Client, func() client.ObjectList { return &v1alpha1.APIKeyList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.MaxConcurrentReconciles, ReconciliationTimeout: deadline.APIKey, RateLimiter: retries.Limiter()}).
		WithLogConstructor(logconstructor.ForController(mgr.GetLogger(), "apikey")).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the API key controller: %w", err)
	}
	return nil
}

// Reconcile activates one key, or withdraws it.
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

// sync brings status.tokens to what the spec wants. It returns a refusal if a token
// cannot be activated; errors are retried.
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

// activate puts a token into the status.
func (r *Reconciler) activate(ctx context.Context, key *v1alpha1.APIKey, token v1alpha1.APIKeyToken) (*refusal, error) {
	switch {
	case key.Status.Token(token.Name) != nil:
		// Its Secret may be gone: a user who has copied the token may delete it,
		// and the token stays in force.
		return nil, nil //nolint:nilnil // neither a refusal nor an error is the good case
	case token.SHA256 != "":
		key.Status.Tokens = append(key.Status.Tokens, v1alpha1.APIKeyTokenStatus{Name: token.Name, CreatedAt: v1alpha1.NewTime(r.Clock.Now())})
		return nil, nil //nolint:nilnil // as above
	default:
		return r.issue(ctx, key, token.Name)
	}
}

// issue generates a token of a key, or finds the one of an earlier pass.
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

// revoke ends the tokens that the key is not to have any more, and deletes their
// Secrets.
func (r *Reconciler) revoke(ctx context.Context, key *v1alpha1.APIKey) error {
	for _, name := range revoked(key) {
		err := credentials.DeleteControlled(ctx, r.APIReader, r.Client, key, secretName(key, name))
		// Without the right to Secrets, the token is withdrawn all the same.
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		key.Status.Tokens = slices.DeleteFunc(key.Status.Tokens, func(t v1alpha1.APIKeyTokenStatus) bool { return t.Name == name })
	}
	return nil
}

// refusedByAPI says why the API server refused the Secret of a key.
func refusedByAPI(err error, secret *corev1.Secret) *refusal {
	if apierrors.IsForbidden(err) {
		return &refusal{
			message:    fmt.Sprintf("Herald may not keep Secrets in namespace %q; is there a Team that owns it, and is it ready?", secret.Namespace),
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
