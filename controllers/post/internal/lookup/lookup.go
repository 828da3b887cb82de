// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lookup asks platforms for the outcome of calls whose response was lost or did not contain it. It never
// publishes.
package lookup

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Lookups looks up open attempts. All fields but ArrivedAt are required.
type Lookups struct {
	// Client reads from the cache, and APIReader from the API server.
	Client, APIReader client.Reader
	// Token returns a connection's current token.
	Token    func(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error)
	Preparer *prepare.Preparer
	Owners   *Owners
	Clock    clock.PassiveClock
	// Refused is called with a connection whose token the platform refused during a lookup.
	Refused func(ctx context.Context, conn *v1alpha1.Connection, attempt string)
	// ArrivedAt returns the time since which this process delivers the posts of a namespace, or the current time if it
	// does not. It is nil if there is only one shard.
	ArrivedAt func(ctx context.Context, namespace string) (time.Time, error)
}

// Lookup looks up the targets' open attempts concurrently, and returns the answers in the order of the targets.
func (l *Lookups) Lookup(ctx context.Context, f *delivery.Facts, targets []int) []*delivery.LookupAnswer {
	answers := make([]*delivery.LookupAnswer, len(targets))
	var asked sync.WaitGroup
	for n, i := range targets {
		a := &delivery.LookupAnswer{Target: i, AskedAt: f.Now}
		answers[n] = a
		asked.Go(func() {
			ctx, span := tracing.Child(ctx, "look up")
			defer span.End()
			a.LookupResult, a.Err = l.lookupTarget(ctx, f, a)
			a.Last = f.NamespaceTerminating || a.Err != nil && errors.Is(a.Err.Err, errNoAccess)
			trace(span, f.Target(i), a)
		})
	}
	asked.Wait()
	return answers
}

func trace(span tracing.Span, t *v1alpha1.TargetStatus, a *delivery.LookupAnswer) {
	span.Number(tracing.Target, a.Target)
	span.Text(tracing.Platform, string(t.Platform))
	span.Text(tracing.Attempt, t.Attempt.ID)
	switch {
	case a.Err != nil:
		span.Fail(string(a.Err.Class))
	case a.Matches == 0:
		span.Text(tracing.Outcome, "not found")
	case a.Matches == 1:
		span.Text(tracing.Outcome, "found")
	default:
		span.Text(tracing.Outcome, "many found")
	}
}

// errNoAccess is the cause if further lookups cannot help: no connection to the account, or no credentials.
var errNoAccess = errors.New("gone")

func noAccess(format string, args ...any) *platforms.Error {
	err := platforms.Errorf(platforms.ClassReconnect, format, args...)
	err.Err = errNoAccess
	return err
}

func (l *Lookups) lookupTarget(ctx context.Context, f *delivery.Facts, a *delivery.LookupAnswer) (none platforms.LookupResult, _ *platforms.Error) {
	t := f.Target(a.Target)
	name := f.Post.Spec.Targets[a.Target].ConnectionRef.Name
	conn := f.Connections[name]
	timing, known := f.Timing(t.Platform)
	switch {
	case !known:
		return none, platforms.Errorf(platforms.ClassUnknown, "this installation does not support the platform %q", t.Platform)
	case conn == nil:
		return none, noAccess("connection %q no longer exists", name)
	case conn.Spec.Platform != t.Platform || !attempt.SameAccount(t.Attempt, conn.Spec.AccountID):
		return none, noAccess("connection %q now belongs to another account; the call was made to account %s on %s", conn.Name, t.Attempt.AccountID, t.Platform)
	}
	to, _ := f.Platforms[t.Platform].(platforms.Publisher)
	job, err := l.job(ctx, f, t, conn, to)
	if err != nil {
		return none, err
	}
	a.App = job.Account.Token.App
	ctx, cancel := context.WithTimeout(ctx, timing.CallTimeout)
	defer cancel()
	result, failed := to.Lookup(ctx, job)
	if failed == nil && result.Matches == 1 && !result.Certain {
		if l.Owners.unconfirmedByOther(f.Post.Namespace, t.Platform, result.ExternalID, owner{f.Post.UID, t.Index}) {
			return none, platforms.Errorf(platforms.ClassUnknown, "a user has named the post that was found for another post, and %s did not confirm that", t.Platform)
		}
		if err := l.ambiguous(ctx, f, t); err != nil {
			return none, err
		}
	}
	if failed == nil {
		if result.Matches == 1 && result.Certain {
			l.finish(ctx, to, job, &result)
		}
		result.Refused = ratelimit.Sanitize(result.Refused, job.Account.Token, l.Clock.Now())
		return result, nil
	}
	var problem *platforms.Error
	if !errors.As(failed, &problem) {
		problem = platforms.Errorf(platforms.ClassTransient, "%v", failed)
	}
	if problem.Class == platforms.ClassRefresh || problem.Class == platforms.ClassReconnect {
		l.Refused(ctx, conn, t.Attempt.ID)
	}
	return none, ratelimit.Sanitize(problem, job.Account.Token, l.Clock.Now())
}

// finish does the platform's remaining work for a post that it has identified, before the outcome is recorded. After a
// crash, the post is found and finished again.
func (l *Lookups) finish(ctx context.Context, to platforms.Publisher, job platforms.Job, found *platforms.LookupResult) {
	finisher, ok := to.(platforms.Finisher)
	if !ok {
		return
	}
	l.Preparer.AddThumbnail(ctx, to, &job.Content)
	note := finisher.Finish(ctx, job, found.ExternalID)
	if found.Note != "" && note != "" {
		note = found.Note + "; " + note
	}
	found.Note = cmp.Or(note, found.Note)
}

func (l *Lookups) job(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus, conn *v1alpha1.Connection, to platforms.Publisher) (job platforms.Job, _ *platforms.Error) {
	token, err := l.Token(ctx, conn)
	if apierrors.IsNotFound(err) {
		return job, noAccess("the credentials of connection %q cannot be used: %v", conn.Name, err)
	}
	if credentials.ReasonOf(err) == credentials.Unverified {
		// Another account would not show the post, and the post would be sent again.
		return job, platforms.Errorf(platforms.ClassTransient, "the credentials of connection %q cannot be used: %v", conn.Name, err)
	}
	if err != nil {
		return job, platforms.Errorf(platforms.ClassReconnect, "the credentials of connection %q cannot be used: %v", conn.Name, err)
	}
	job = l.Preparer.Job(&prepare.Target{Post: f.Post, Index: int(t.Index), Conn: conn, Media: f.Media, Token: token})
	job.Checkpoint, job.OperationID = t.Attempt.Checkpoint, t.Attempt.OperationID
	job.SearchFrom = attempt.SearchFrom(t.Attempt)
	if ended := t.Attempt.EndedAt; ended != nil {
		job.AcceptedAt = ended.Time
	}
	if to.Capabilities().SecretUploads && job.Checkpoint != "" {
		kept, err := l.Preparer.Session(ctx, f.Post, int(t.Index))
		if err != nil {
			return job, platforms.Errorf(platforms.ClassTransient, "%v", err)
		}
		if kept.Checkpoint == job.Checkpoint {
			job.Secret = kept.Secret
		}
	}
	if err := l.load(ctx, conn, job.SearchFrom); err != nil {
		return job, platforms.Errorf(platforms.ClassTransient, "the other posts of the account cannot be read: %v", err)
	}
	job.BelongsToOther = func(externalID string) bool {
		return l.Owners.ownedByOther(conn.Spec.Platform, conn.Spec.AccountID, externalID, owner{f.Post.UID, t.Index})
	}
	return job, nil
}

// Claim assigns the post that a lookup has found to the target. If another target has been given it since the lookup,
// Claim clears the answer, unless the platform itself has identified the post.
func (l *Lookups) Claim(post *v1alpha1.Post, a *delivery.LookupAnswer) {
	t := posting.Of(post).Target(a.Target)
	self := owner{post.UID, t.Index}
	switch result := &a.LookupResult; {
	case a.Err != nil || result.Matches != 1 || result.ExternalID == "":
	case result.Certain:
		l.Owners.assign(t.Platform, t.Attempt.AccountID, result.ExternalID, self)
	case !l.Owners.Reserve(t.Platform, t.Attempt.AccountID, result.ExternalID, self.post, self.target):
		*result = platforms.LookupResult{}
	}
}

// ambiguous returns an error while the post that a lookup has found for a target may belong to another target: a call
// with equal text to the same account is in progress, or the platform has accepted one whose id is unknown.
func (l *Lookups) ambiguous(ctx context.Context, f *delivery.Facts, self *v1alpha1.TargetStatus) *platforms.Error {
	// Finished posts, whose ids are known, are not in the cache.
	posts, err := OpenOn(ctx, l.Client, self.Platform, self.Attempt.AccountID)
	if err != nil {
		return platforms.Errorf(platforms.ClassTransient, "the other posts cannot be read: %v", err)
	}
	said := text.Fold(delivery.Text(f.Post, int(self.Index)))
	others := []*v1alpha1.Post{f.Post}
	for i := range posts {
		if posts[i].UID != f.Post.UID {
			others = append(others, &posts[i])
		}
	}
	for _, post := range others {
		same, err := l.sameWords(ctx, f, post, self, said)
		if err != nil {
			return platforms.Errorf(platforms.ClassTransient, "another post cannot be read: %v", err)
		}
		if same {
			return platforms.Errorf(platforms.ClassUnknown, "another post with the same text on the account has no id yet, so the post that was found may be that one")
		}
	}
	return nil
}

// sameWords reports whether another target in a cached post has self's text and may have published the found post.
func (l *Lookups) sameWords(ctx context.Context, f *delivery.Facts, post *v1alpha1.Post, self *v1alpha1.TargetStatus, said string) (bool, error) {
	// The text of a partly cached post is read only if it is needed.
	texts := post
	for n := range post.Status.Targets {
		t := &post.Status.Targets[n]
		if t == self || !l.mayMatch(f, t, self) {
			continue
		}
		if !kubeclient.IsComplete(texts) {
			live, err := l.fetchFull(ctx, post)
			if live == nil {
				return false, err
			}
			texts = live
		}
		if text.Fold(delivery.Text(texts, int(t.Index))) == said {
			return true, nil
		}
	}
	return false, nil
}

// fetchFull reads a post with its text from the API server. It returns nil if the post was deleted or replaced.
func (l *Lookups) fetchFull(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	var live v1alpha1.Post
	if err := l.APIReader.Get(ctx, client.ObjectKeyFromObject(post), &live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if live.UID != post.UID {
		return nil, nil //nolint:nilnil // another post of the same name: this one is gone
	}
	return &live, nil
}

func openAccounts(obj client.Object) (keys []string) {
	post, ok := obj.(*v1alpha1.Post)
	if !ok {
		return nil
	}
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; attempt.IsOpen(t.Attempt) {
			keys = append(keys, accountKey(t))
		}
	}
	return keys
}

func accountKey(t *v1alpha1.TargetStatus) string {
	return accountName(t.Platform, t.Attempt.AccountID)
}

func accountName(platform v1alpha1.Platform, id string) string { return string(platform) + "/" + id }

// mayMatch reports whether another target's unresolved call to the same account may have published the found post.
func (l *Lookups) mayMatch(f *delivery.Facts, t, self *v1alpha1.TargetStatus) bool {
	if t.Platform != self.Platform || !attempt.IsOpen(t.Attempt) || t.Attempt.AccountID != self.Attempt.AccountID {
		return false
	}
	timing, ok := f.Timing(t.Platform)
	return t.Attempt.OperationID != "" || ok && !attempt.CallFinished(t.Attempt, timing, l.Clock.Now())
}
