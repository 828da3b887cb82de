// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/rules"
)

// scope is what one pass over one post knows.
type scope struct {
	*Reconciler
	// post is the working copy; stored is the status as it was last read or
	// written.
	post   *v1alpha1.Post
	stored v1alpha1.PostStatus
	key    types.NamespacedName
	log    logr.Logger
	// conns holds the connections read in this pass, by name; nil for one
	// that does not exist.
	conns map[string]*v1alpha1.Connection
	// media holds the files that the post shows, by name; nil for one that does
	// not exist.
	media map[string]*v1alpha1.Media
	// appHolds holds until when the post's platforms want no calls of the app.
	appHolds map[v1alpha1.Platform]time.Time
	// rank is the priority with which the post comes back; nil keeps it.
	rank *int
	// waits is set when a change of a connection is to wake the post.
	waits bool
	// keepsSessions is set if uploads of the post are known to be kept in a Secret.
	keepsSessions bool
	// patientUntil is how long the targets wait for a preparation; zero if
	// they do not.
	patientUntil time.Time
}

// sync decides from recorded facts what this pass does, does it, and returns
// when to come back (zero: when something changes).
func (s *scope) sync(ctx context.Context) (time.Duration, error) {
	if done, err := s.recoverResults(ctx); !done || err != nil {
		return 0, err
	}
	if err := s.applyResolutions(ctx); err != nil {
		return 0, err
	}
	now := s.Clock.Now()
	switch {
	case !s.post.DeletionTimestamp.IsZero():
		return s.finalize(ctx)
	case posting.Started(s.post):
		return s.deliver(ctx)
	case s.post.Status.Finished:
		return 0, nil
	case s.post.Spec.Cancelled:
		return 0, s.describeAnd(ctx, v1alpha1.ReasonCancelled, "cancelled before delivery began")
	case s.mayHaveBeenSent(now):
		return 0, s.failAll(ctx, v1alpha1.ReasonOutcomeUnknown, restoredMessage)
	}
	if err := s.loadConnections(ctx); err != nil {
		return 0, err
	}
	if err := s.loadMedia(ctx); err != nil {
		return 0, err
	}
	if errs := s.validate(); len(errs) > 0 {
		return s.refuse(ctx, errs)
	}
	switch {
	case s.post.Spec.Draft:
		return 0, s.accept(ctx, v1alpha1.ReasonDraft)
	case posting.Wait(s.post, now) > 0:
		return s.schedule(ctx)
	}
	setAccepted(s.post, now, v1alpha1.ReasonAccepted, acceptedMessage)
	return s.deliver(ctx)
}

const acceptedMessage = "the post passed every rule"

// mayHaveBeenSent reports whether the object is a copy from a backup of a post
// whose time had come before.
func (s *scope) mayHaveBeenSent(now time.Time) bool {
	return posting.Restored(s.post) && len(s.post.Status.Targets) == 0 && !s.post.Spec.Draft && posting.Wait(s.post, now) <= 0
}

const restoredMessage = "not sent: this object is younger than the post, so it seems to be a copy restored from a backup (or the clocks of the apiserver and " +
	"of Kubernetes differ by more than a minute), and whether the original was published is unknown. " +
	"Look at the account, then say so with the annotation " + v1alpha1.SettleAnnotation + ": \"<index>=posted:<id>\" or \"<index>=not-sent\""

func (s *scope) loadConnections(ctx context.Context) error {
	if s.conns != nil {
		return nil
	}
	s.conns = map[string]*v1alpha1.Connection{}
	for i := range s.post.Spec.Targets {
		name := s.post.Spec.Targets[i].ConnectionRef.Name
		if _, ok := s.conns[name]; ok {
			continue
		}
		// Registered before it is read: a change between the two must wake.
		key := types.NamespacedName{Namespace: s.key.Namespace, Name: name}
		s.waiting.add(key, s.key)
		var conn v1alpha1.Connection
		err := s.Client.Get(ctx, key, &conn)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("cannot read connection %q: %w", name, err)
		case err != nil:
			s.conns[name] = nil
		default:
			s.conns[name] = &conn
		}
	}
	return s.loadAppHolds(ctx)
}

// loadMedia reads the files that the post shows.
func (s *scope) loadMedia(ctx context.Context) error {
	for _, name := range posting.MediaNames(&s.post.Spec) {
		// Registered before it is read: a change between the two must wake.
		s.waiting.add(mediaKey(s.key.Namespace, name), s.key)
		var media v1alpha1.Media
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: name}, &media)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("cannot read media %q: %w", name, err)
		case err == nil:
			if s.media == nil {
				s.media = map[string]*v1alpha1.Media{}
			}
			s.media[name] = &media
		}
	}
	return nil
}

// mediaKey tells a file that posts wait for from a connection of the same name:
// no name holds a slash.
func mediaKey(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: "media/" + name}
}

func (s *scope) connection(i int) *v1alpha1.Connection {
	return s.conns[s.post.Spec.Targets[i].ConnectionRef.Name]
}

// waitForConnections asks to be woken when a connection of the post changes.
func (s *scope) waitForConnections() { s.waits = true }

func (s *scope) validate() field.ErrorList {
	env := rules.Env{
		Connection: func(name string) *v1alpha1.Connection { return s.conns[name] },
		Media:      func(name string) *v1alpha1.Media { return s.media[name] },
		Limits:     rules.LimitsOf(s.Platforms),
	}
	return append(rules.Validate(s.post, env), rules.TikTokPrivacy(s.post, env)...)
}

// What a post waits for, by the reason why it is not accepted: what to do, and
// why it fails when nobody has done it in time.
var (
	remedies = map[string]string{
		v1alpha1.ReasonConnectionNotFound: "create the connection",
		v1alpha1.ReasonMediaNotFound:      "create the media file",
		v1alpha1.ReasonMediaNotReady:      "upload the media file",
	}
	tooLate = map[string]string{
		v1alpha1.ReasonConnectionNotFound: "a connection that it names did not come into being in time",
		v1alpha1.ReasonMediaNotFound:      "a media file that it names did not come into being in time",
		v1alpha1.ReasonMediaNotReady:      "a media file that it names was not uploaded in time",
	}
)

// refusal is the reason why a post is not accepted: the gravest of its errors.
func (s *scope) refusal(errs field.ErrorList) string {
	reason := v1alpha1.ReasonMediaNotReady
	for _, err := range errs {
		name, _ := err.BadValue.(string)
		switch {
		case err.Type != field.ErrorTypeNotFound:
			return v1alpha1.ReasonInvalid
		case strings.Contains(err.Field, "connectionRef"):
			reason = v1alpha1.ReasonConnectionNotFound
		case reason == v1alpha1.ReasonMediaNotReady && s.media[name] == nil:
			reason = v1alpha1.ReasonMediaNotFound
		}
	}
	return reason
}

// refuse writes why the post is not accepted. It stays mendable, and a
// connection that comes into being later wakes it, within the starting
// deadline: nobody wants an old post to go out because of a new connection.
func (s *scope) refuse(ctx context.Context, errs field.ErrorList) (time.Duration, error) {
	reason := s.refusal(errs)
	message := errs.ToAggregate().Error()
	var left time.Duration
	if remedy, ok := remedies[reason]; ok {
		message += "; " + remedy + " and the post goes on by itself, or correct its name"
		if left = s.patience(); left <= 0 {
			return 0, s.failAll(ctx, reason, "not published: "+tooLate[reason])
		}
	}
	s.waitForConnections()
	setAccepted(s.post, s.Clock.Now(), reason, message)
	changed, err := s.write(ctx)
	if (changed && err == nil) || posting.TooLarge(err) { // when not even this fits, the owner learns it all the same
		s.warn(reason, message)
	}
	return left, err
}

// patience is how long the post may still wait for a connection to come into
// being: the starting deadline, counted from when it was due or, if that was
// later, found wanting. A draft has time.
func (s *scope) patience() time.Duration {
	now := s.Clock.Now()
	if s.post.Spec.Draft {
		return s.StartingDeadline
	}
	from := posting.Due(s.post)
	since := now
	if c := meta.FindStatusCondition(s.post.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		since = c.LastTransitionTime.Time
	}
	if since.After(from) {
		from = since
	}
	return from.Add(s.StartingDeadline).Sub(now)
}

// accept writes that the post passed every rule and waits for its time, or
// for a person.
func (s *scope) accept(ctx context.Context, reason string) error {
	news := posting.PhaseOf(&v1alpha1.Post{Spec: s.post.Spec, Status: s.stored}) != s.stored.Phase || s.stored.ObservedGeneration != s.post.Generation
	s.noteAccepted()
	changed, err := s.write(ctx)
	if news && changed && err == nil {
		s.story.note(s.post, reason, summary(s.post).Message)
	}
	return err
}

// noteAccepted enters into the ledger that the post passed every rule.
func (s *scope) noteAccepted() {
	setAccepted(s.post, s.Clock.Now(), v1alpha1.ReasonAccepted, acceptedMessage)
	s.noteTargets()
}

// longestWait bounds one wait for a scheduled time: a timer does not run while
// the machine is suspended, and does not see its clock being set.
const longestWait = 5 * time.Minute

func (s *scope) schedule(ctx context.Context) (time.Duration, error) {
	s.noteAccepted()
	next := s.prepareAhead(ctx)
	if err := s.accept(ctx, v1alpha1.ReasonScheduled); err != nil {
		return 0, err
	}
	// Never zero, which would mean "not again".
	now := s.Clock.Now()
	wait := max(posting.Wait(s.post, now), time.Millisecond)
	if ahead := next.Sub(now); !next.IsZero() && ahead < min(wait, longestWait) {
		return max(ahead, time.Millisecond), nil
	}
	if wait > longestWait {
		return longestWait - s.spread(longestWait/2), nil
	}
	s.rank = new(s.priority())
	return wait, nil
}

// noteTargets gives every target its ledger entry.
func (s *scope) noteTargets() {
	for i := range s.post.Spec.Targets {
		t := posting.Target(s.post, i)
		if t == nil {
			s.post.Status.Targets = append(s.post.Status.Targets, v1alpha1.TargetStatus{Index: int32(i)})
			t = &s.post.Status.Targets[len(s.post.Status.Targets)-1]
		}
		if conn := s.connection(i); conn != nil && t.Attempt == nil {
			t.Platform = conn.Spec.Platform
		}
		if t.Attempt == nil && s.post.Status.ObservedGeneration != s.post.Generation && t.Reason != v1alpha1.ReasonOutcomeUnknown {
			// What was noted speaks of the spec before an edit.
			t.Reason, t.Message, t.TryUntil, t.NextTryAt = "", "", nil, nil
			t.Phase = v1alpha1.PhaseProcessing
		}
		if t.Attempt == nil && t.Phase != v1alpha1.PhaseFailed {
			if t.Phase = posting.TargetPhaseOf(s.post, i); t.Phase == v1alpha1.PhaseFailed {
				// The post is refused as it stands, which settles nothing: in
				// the ledger, failed is a fact.
				t.Phase = v1alpha1.PhaseProcessing
			}
		}
	}
}

// failAll fails every target that is not settled.
func (s *scope) failAll(ctx context.Context, reason, message string) error {
	if err := s.loadConnections(ctx); err != nil {
		return err
	}
	s.noteTargets()
	for i := range s.post.Status.Targets {
		t := &s.post.Status.Targets[i]
		if t.Phase == v1alpha1.PhasePosted || t.Phase == v1alpha1.PhaseFailed {
			continue
		}
		if err := attempt.Fail(t, reason, message); err != nil {
			return fmt.Errorf("target %d: %w", t.Index, err)
		}
	}
	_, err := s.write(ctx)
	if err == nil {
		s.warn(reason, message)
	}
	return err
}

// describeAnd writes the derived status and tells the owner.
func (s *scope) describeAnd(ctx context.Context, reason, message string) error {
	s.noteCancelled()
	changed, err := s.write(ctx)
	if changed && err == nil {
		s.story.note(s.post, reason, message)
	}
	return err
}

func (s *scope) noteCancelled() {
	for i := range s.post.Status.Targets {
		if t := &s.post.Status.Targets[i]; t.Phase != v1alpha1.PhaseFailed {
			t.Phase, t.Reason, t.Message = v1alpha1.PhaseCancelled, v1alpha1.ReasonCancelled, ""
		}
	}
}

// finalize lets a post that is being deleted go once no call for it can be
// under way.
func (s *scope) finalize(ctx context.Context) (time.Duration, error) {
	for i := range s.post.Status.Targets {
		if attempt.IsOpen(s.post.Status.Targets[i].Attempt) {
			return s.deliver(ctx)
		}
	}
	return 0, s.removeFinalizer(ctx)
}

func (s *scope) removeFinalizer(ctx context.Context) error {
	if !controllerutil.ContainsFinalizer(s.post, v1alpha1.DeliveryFinalizer) {
		return nil
	}
	base := s.post.DeepCopy()
	controllerutil.RemoveFinalizer(s.post, v1alpha1.DeliveryFinalizer)
	if err := s.Client.Patch(ctx, s.post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot release the post for deletion: %w", err)
	}
	return nil
}

// publisher returns what publishes to a platform, and converts images for it, if
// this process has it.
func (s *scope) publisher(name v1alpha1.Platform) (platforms.Publisher, bool) {
	p, ok := s.Platforms[name].(platforms.Publisher)
	if !ok {
		return nil, false
	}
	return converting{Publisher: p, files: s.Files, renditions: s.Renditions, thumbnails: s.Thumbnails}, true
}
