// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission is the webhook that rejects an invalid Post when it is applied, by the same rules as the REST API
// and the reconciler. It also warns about PostSchedules.
//
// The webhook is optional: if it is unavailable, the API server continues without it, and the reconciler rejects the
// same posts.
package admission

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/rules"
)

// The manager checks whether the API server trusts its webhook. Roles in config/rbac/webhook.yaml allow it to store the
// certificate and to write the CA bundle into the webhook configuration.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=herald,verbs=get
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections;media,verbs=get;list;watch

// PostPath is the path of the webhook, or the parent of its secret path.
const PostPath = "/validate-post"

// responseTimeout is the timeout for a check, shorter than the timeout of the webhook, so that the client receives the
// reason.
const responseTimeout = 3 * time.Second

// Options configures the webhook. All fields except SecretPath, Namespaces and Budgets are required.
type Options struct {
	// Reader reads Connections and Media; it may be a cache. APIReader reads a post that is being retried from the API
	// server, because the cache excludes finished posts.
	Reader    client.Reader
	APIReader client.Reader
	// Platforms are the platforms of this installation.
	Platforms platforms.Registry
	// StartingDeadline is how late a scheduled post may still be published.
	StartingDeadline time.Duration
	Clock            clock.PassiveClock
	// SecretPath returns the secret path below PostPath that only the API server is configured with. While it is empty,
	// every request gets a 404. The path is secret because responses reveal the namespace's accounts and files, and the
	// API server presents no client certificate to webhooks. If SecretPath is nil, PostPath serves all clients.
	SecretPath func() string
	// Budgets enforces the budgets of teams. If nil, none are enforced.
	Budgets *Budgets
	// Namespaces are the namespaces that this installation serves. Posts in other namespaces are admitted.
	Namespaces configv1alpha1.Namespaces
}

// PostValidator validates posts. It implements admission.Validator.
type PostValidator struct{ Options }

var _ admission.Validator[*v1alpha1.Post] = (*PostValidator)(nil)

// SetupWithManager registers the webhook with the manager's webhook server, on every replica, not only the leader.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Reader == nil || o.APIReader == nil || o.Clock == nil || o.StartingDeadline <= 0 {
		return errors.New("the webhook needs Reader, APIReader, Clock and StartingDeadline")
	}
	hook := &admission.Webhook{LogConstructor: conditions.WebhookLogger, Handler: byKind{
		posts:     admission.WithValidator(mgr.GetScheme(), &PostValidator{o}).Handler,
		schedules: admission.WithValidator(mgr.GetScheme(), &ScheduleValidator{o}).Handler,
	}}
	if o.SecretPath == nil {
		mgr.GetWebhookServer().Register(PostPath, hook)
		return nil
	}
	for _, path := range []string{PostPath, PostPath + "/"} { // without the first, the second would redirect
		mgr.GetWebhookServer().Register(path, requirePath(o.SecretPath, hook))
	}
	return nil
}

func requirePath(path func() string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := path()
		if known == "" || subtle.ConstantTimeCompare([]byte(r.URL.Path), []byte(known)) != 1 {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ValidateCreate validates a new post.
func (p *PostValidator) ValidateCreate(ctx context.Context, post *v1alpha1.Post) (admission.Warnings, error) {
	return p.validate(ctx, nil, post)
}

// ValidateUpdate validates a changed post.
func (p *PostValidator) ValidateUpdate(ctx context.Context, stored, post *v1alpha1.Post) (admission.Warnings, error) {
	return p.validate(ctx, stored, post)
}

// ValidateDelete allows every deletion.
func (p *PostValidator) ValidateDelete(context.Context, *v1alpha1.Post) (admission.Warnings, error) {
	return nil, nil
}

// validate rejects a post that contradicts existing objects or exceeds the size limits or the team's budget. Missing
// objects only cause a warning, because a GitOps tool applies a whole set at once. stored is the previous version of
// the post, or nil.
func (p *PostValidator) validate(ctx context.Context, stored, post *v1alpha1.Post) (admission.Warnings, error) {
	if !p.Namespaces.Include(post.Namespace) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	// Every stored post takes up space, published or not. A post that has not grown passes.
	if stored == nil || growth(stored, post, int64(posting.Of(post).Size()-posting.Of(stored).Size())) > 0 {
		if errs := rules.ValidateSize(post, stored); len(errs) > 0 {
			return nil, invalid(post, errs) // its text is not validated, because it may be of any length
		}
	}
	var refused field.ErrorList
	full, undo, err := p.Budgets.reserve(ctx, p.Clock.Now(), stored, post)
	switch {
	case err != nil:
		ctrllog.FromContext(ctx).Error(err, "a post was admitted without a check of its team's budget")
	case full != nil:
		refused = append(refused, full)
	}
	if was := posting.Of(stored); stored != nil && was.Cancelled() && was.Unsent() && post.DeletionTimestamp.IsZero() {
		return admission.Warnings{cancelledWarning(stored)}, reject(post, refused, undo)
	}
	warnings, wrong := p.validateContents(ctx, stored, post)
	return warnings, reject(post, append(refused, wrong...), undo)
}

// reject returns the rejection of a post and undoes its budget reservation, or nil if there are no errors.
func reject(post *v1alpha1.Post, errs field.ErrorList, undo func()) error {
	if len(errs) == 0 {
		return nil
	}
	undo()
	return invalid(post, errs)
}

func invalid(post *v1alpha1.Post, errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Post"}, post.Name, errs)
}

// validateContents validates a post's contents, and warns about missing objects. It skips a post that is cancelled,
// being deleted, or started, since the schema makes its spec immutable. It also skips metadata-only changes.
func (p *PostValidator) validateContents(ctx context.Context, stored, post *v1alpha1.Post) (warnings admission.Warnings, refused field.ErrorList) {
	settled := posting.Of(post).Cancelled() || !post.DeletionTimestamp.IsZero()
	if settled || stored != nil && (posting.Of(post).Started() || reflect.DeepEqual(stored.Spec, post.Spec)) {
		return nil, nil
	}
	env, err := p.env(ctx, post)
	if err == nil {
		warnings, refused, err = p.validateRetry(ctx, post, &env)
	}
	if err != nil {
		ctrllog.FromContext(ctx).Error(err, "a post was admitted without being checked")
		return admission.Warnings{"the post was not checked against its connections and media; see its condition Accepted"}, nil
	}
	env.Stored = stored
	warnings = append(append(warnings, p.lateness(post)...), rules.Warnings(post, env)...)
	for _, w := range rules.FileWarnings(post, env) {
		warnings = append(warnings, w.String())
	}
	for _, e := range append(rules.Validate(post, env), rules.ValidateOptions(post, env)...) {
		if e.Type == field.ErrorTypeNotFound {
			warnings = append(warnings, fmt.Sprintf("%s: %s %q; the post waits for it", e.Field, e.Detail, e.BadValue))
			continue
		}
		refused = append(refused, e)
	}
	return warnings, refused
}

// lateness warns about a scheduled time in the past. It is not an error: a repository may contain old posts.
func (p *PostValidator) lateness(post *v1alpha1.Post) admission.Warnings {
	if at := post.Spec.ScheduledAt; at != nil && p.Clock.Since(at.Time) > p.StartingDeadline {
		return admission.Warnings{fmt.Sprintf(
			"spec.scheduledAt: %s has passed by more than %s; a post that was not published yet fails with reason MissedSchedule", at, p.StartingDeadline)}
	}
	return nil
}

func (p *PostValidator) env(ctx context.Context, post *v1alpha1.Post) (rules.Env, error) {
	connections := map[string]*v1alpha1.Connection{}
	for i := range post.Spec.Targets {
		name := post.Spec.Targets[i].ConnectionRef.Name
		if _, ok := connections[name]; ok {
			continue
		}
		found, err := read(ctx, p.Reader, post.Namespace, name, &v1alpha1.Connection{})
		if err != nil {
			return rules.Env{}, fmt.Errorf("cannot read connection %q: %w", name, err)
		}
		connections[name] = found
	}
	media := map[string]*v1alpha1.Media{}
	for _, name := range posting.Of(post).MediaNames() {
		found, err := read(ctx, p.Reader, post.Namespace, name, &v1alpha1.Media{})
		if err != nil {
			return rules.Env{}, fmt.Errorf("cannot read media %q: %w", name, err)
		}
		media[name] = found
	}
	converts, err := p.converts(ctx, post.Namespace)
	if err != nil {
		return rules.Env{}, err
	}
	return rules.Env{
		Converts:     converts,
		Connection:   func(name string) *v1alpha1.Connection { return connections[name] },
		Media:        func(name string) *v1alpha1.Media { return media[name] },
		Capabilities: p.Platforms.Capabilities,
	}, nil
}

func (p *PostValidator) converts(ctx context.Context, namespace string) (bool, error) {
	if p.Budgets == nil || p.Budgets.Owner == nil {
		return false, nil
	}
	team, err := p.Budgets.Owner(ctx, namespace)
	if err != nil {
		return false, fmt.Errorf("cannot read the team of the namespace: %w", err)
	}
	return team != nil && team.Spec.Media.Convert, nil
}

// read reads an object; it returns the zero value if the object does not exist.
func read[T client.Object](ctx context.Context, from client.Reader, namespace, name string, into T) (found T, err error) {
	err = from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return found, nil
	case err != nil:
		return found, err
	default:
		return into, nil
	}
}
