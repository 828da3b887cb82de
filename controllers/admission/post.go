// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission is the webhook that rejects a wrong Post when it is applied, by the
// same rules as the HTTP service and the reconciler.
//
// Nothing depends on it: if it does not answer, the API server continues without it,
// and the reconciler refuses the same posts.
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
	"github.com/herald-social/herald/internal/logconstructor"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/rules"
)

// The manager looks whether the API server trusts its webhook. Roles of config/rbac/webhook.yaml let it keep the
// certificate, and put the authority into the webhook's configuration.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=herald,verbs=get
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections;media,verbs=get;list;watch

// PostPath is where the webhook is served, or below it.
const PostPath = "/validate-post"

// answerWithin is how long a check may take: less than the timeout of the webhook's
// configuration, so that a client learns why the post was not checked.
const answerWithin = 3 * time.Second

// Options is what the webhook needs. Every field but Called, Namespaces and Budgets is required.
type Options struct {
	// Reader reads Connections and Media; it may be a cache.
	Reader client.Reader
	// Platforms are those of this installation.
	Platforms platforms.Registry
	// StartingDeadline is how late a scheduled post may still go out.
	StartingDeadline time.Duration
	Clock            clock.PassiveClock
	// SecretPath returns the path below PostPath that only the API server knows; empty answers nobody. What the webhook says of
	// a post tells of the accounts and files of its namespace, and the API server shows no certificate to webhooks. A nil
	// Called answers everyone, at PostPath.
	SecretPath func() string
	// Budgets hold posts to the budgets of their teams; nil holds none.
	Budgets *Budgets
	// Namespaces are those that this installation serves. Posts elsewhere are admitted.
	Namespaces configv1alpha1.Namespaces
}

// PostValidator judges posts. It implements admission.Validator.
type PostValidator struct{ Options }

var _ admission.Validator[*v1alpha1.Post] = (*PostValidator)(nil)

// SetupWithManager serves the webhook on the manager's webhook server. Every
// replica answers, not only the leader.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	if o.Reader == nil || o.Clock == nil || o.StartingDeadline <= 0 {
		return errors.New("the webhook needs Reader, Clock and StartingDeadline")
	}
	hook := admission.WithValidator(mgr.GetScheme(), &PostValidator{o})
	hook.LogConstructor = logconstructor.ForWebhook
	if o.SecretPath == nil {
		mgr.GetWebhookServer().Register(PostPath, hook)
		return nil
	}
	for _, path := range []string{PostPath, PostPath + "/"} { // without the first, the second would redirect
		mgr.GetWebhookServer().Register(path, requirePath(o.SecretPath, hook))
	}
	return nil
}

// requirePath answers those who know the path, and tells others that there is nothing.
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

// ValidateCreate judges a new post.
func (p *PostValidator) ValidateCreate(ctx context.Context, post *v1alpha1.Post) (admission.Warnings, error) {
	return p.validate(ctx, nil, post)
}

// ValidateUpdate judges a post that was changed.
func (p *PostValidator) ValidateUpdate(ctx context.Context, stored, post *v1alpha1.Post) (admission.Warnings, error) {
	return p.validate(ctx, stored, post)
}

// ValidateDelete allows every deletion.
func (p *PostValidator) ValidateDelete(context.Context, *v1alpha1.Post) (admission.Warnings, error) {
	return nil, nil
}

// validate refuses a post that contradicts existing objects, that is larger than a post may be,
// or for which the team's budget has no room. For missing objects it only warns, since a
// GitOps tool applies a whole set at once. stored is the post before a change; nil for a new
// one.
func (p *PostValidator) validate(ctx context.Context, stored, post *v1alpha1.Post) (admission.Warnings, error) {
	if !p.Namespaces.Include(post.Namespace) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	// Also what will not be published is judged so far: a post takes its room however it
	// ends. One that is not larger than it was passes.
	if stored == nil || growth(stored, post, int64(posting.Size(post)-posting.Size(stored))) > 0 {
		if errs := rules.ValidateSize(post, stored); len(errs) > 0 {
			return nil, invalid(post, errs) // its texts are not counted: what they hold may be of any length
		}
	}
	var refused field.ErrorList
	full, undo, err := p.Budgets.reserve(ctx, p.Clock.Now(), stored, post)
	switch {
	case err != nil:
		ctrllog.FromContext(ctx).Error(err, "a post was admitted without a look at its team's budget")
	case full != nil:
		refused = append(refused, full)
	}
	if stored != nil && posting.Cancelled(stored) && !posting.Started(stored) && post.DeletionTimestamp.IsZero() {
		return admission.Warnings{cancelledWarning(stored)}, reject(post, refused, undo)
	}
	warnings, wrong := p.validateContents(ctx, stored, post)
	return warnings, reject(post, append(refused, wrong...), undo)
}

// reject returns the refusal of a post, and gives back what the budget counted for it. It returns nil if there are
// no errors.
func reject(post *v1alpha1.Post, errs field.ErrorList, undo func()) error {
	if len(errs) == 0 {
		return nil
	}
	undo()
	return invalid(post, errs)
}

// invalid is the answer about a post that is refused.
func invalid(post *v1alpha1.Post, errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "Post"}, post.Name, errs)
}

// validateContents judges what is to be published, and warns of what is missing yet. It ignores a
// post that is cancelled, deleted, or already on its way, whose spec the schema fixes, and
// one of which only the metadata were changed.
func (p *PostValidator) validateContents(ctx context.Context, stored, post *v1alpha1.Post) (warnings admission.Warnings, refused field.ErrorList) {
	settled := posting.Cancelled(post) || !post.DeletionTimestamp.IsZero()
	if settled || stored != nil && (posting.Started(post) || reflect.DeepEqual(stored.Spec, post.Spec)) {
		return nil, nil
	}
	env, err := p.env(ctx, post)
	if err != nil {
		ctrllog.FromContext(ctx).Error(err, "a post was admitted without being checked")
		return admission.Warnings{"the post was not checked against its connections and media; its condition Accepted will tell"}, nil
	}
	env.Stored = stored
	warnings = append(p.lateness(post), rules.Warnings(post, env)...)
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

// lateness warns of a time that has passed. That is no error: a repository may hold
// posts that were published long ago.
func (p *PostValidator) lateness(post *v1alpha1.Post) admission.Warnings {
	if at := post.Spec.ScheduledAt; at != nil && p.Clock.Since(at.Time) > p.StartingDeadline {
		return admission.Warnings{fmt.Sprintf(
			"spec.scheduledAt: %s has passed by more than %s; a post that was not published yet fails with reason MissedSchedule", at, p.StartingDeadline)}
	}
	return nil
}

// env reads the objects that the post refers to.
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
	for _, name := range posting.MediaNames(&post.Spec) {
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

// converts reports whether the team of a namespace has its videos converted.
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
