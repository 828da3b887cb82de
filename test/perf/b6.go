// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
	"github.com/herald-social/herald/test/sandboxtest"
)

// B6's goals: the time from a manager's start until it first publishes a due post, in seconds; the time from the
// earliest possible lookup until the last unknown outcome is settled, in seconds; and the peak memory until then, in
// MiB.
const (
	goalFirst   = 5.0
	goalSettled = 30.0
	goalDoubt   = 256.0
)

const (
	// dueOf is the divisor that gives the number of posts due at the start: 500 of 100,000.
	dueOf = 200
	// inDoubt is the number of open calls when the manager is killed: the limit for a single team.
	inDoubt = 128
	// finishedOver is the period over which the finished posts were published.
	finishedOver = 30 * 24 * time.Hour
	// heldFor is the duration of a call that is cut off: less than the timeout of a call, which is 20 s.
	heldFor = 15 * time.Second
	// doubtLead is the time between the creation and the due time of the posts whose calls are cut off.
	doubtLead = 15 * time.Second
	// firstB6 is the first account number.
	firstB6 = firstX + 1_000_000
)

// b6 starts the manager for a team with many posts.
type b6 struct {
	*session
	sample   *delivered
	content  *content
	team     stack.Team
	finished *stack.StoredPosts
	// rest is the size of a finished post in the control plane.
	rest atRest
}

func runB6(ctx context.Context, s *session, r *report, id string) error {
	b := &b6{session: s}
	err := s.prepare(ctx, func() (err error) {
		if b.sample, err = b.deliveredPost(ctx, s.texts()); err != nil {
			return err
		}
		teams, err := s.stack.MakeTeams(ctx, "large", 1)
		if err != nil {
			return err
		}
		b.team = teams[0]
		b.team.Connections, err = s.stack.Connect(ctx, v1alpha1.PlatformX, b.team.Namespace, firstB6, inDoubt)
		return err
	})
	if err != nil {
		return err
	}
	b.content = &content{teams: []stack.Team{b.team}, platforms: []v1alpha1.Platform{v1alpha1.PlatformX}}
	due := max(b.b6Posts/dueOf, 1)
	if err := b.storeFinished(ctx, b.b6Posts-due); err != nil {
		return err
	}
	first, last, err := b.restart(ctx, due)
	if err != nil {
		return err
	}
	settled, memory, err := b.doubt(ctx)
	if err != nil {
		return err
	}
	r.limit(id, fmt.Sprintf("manager starts with %d posts, %d due: first publication", b.b6Posts, due), fmt.Sprintf("%.2f s", first), fmt.Sprintf("≤ %.0f s", goalFirst), first <= goalFirst)
	r.limit("", fmt.Sprintf("%d calls with an unknown outcome: all settled after the earliest lookup time", inDoubt), fmt.Sprintf("%.1f s", settled), fmt.Sprintf("≤ %.0f s", goalSettled), settled <= goalSettled)
	r.limit("", "manager's peak memory until then", fmt.Sprintf("%.0f MiB", memory), fmt.Sprintf("≤ %.0f MiB", goalDoubt), memory <= goalDoubt)
	r.add(id, map[string]any{
		"first_publish_s": first, "goal": goalFirst, "met": first <= goalFirst, "last_publish_s": last, "posts": b.b6Posts, "due": due,
		"in_doubt": inDoubt, "settled_s": settled, "settled_goal": goalSettled, "settled_met": settled <= goalSettled,
		"mib": memory, "mib_goal": goalDoubt, "mib_met": memory <= goalDoubt,
		"etcd_bytes_per_post": measure.Rounded(b.rest.etcd, 0), "kube_apiserver_bytes_per_post": measure.Rounded(b.rest.kubeAPIServer, 0),
	})
	return errors.Join(b.finished.Remove(ctx), b.clear(ctx))
}

// storeFinished stores finished posts, and measures the size of one in the control plane.
func (b *b6) storeFinished(ctx context.Context, posts int) error {
	b.logf("  B6: storing %d finished posts in one team", posts)
	before, err := b.atRest(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	b.finished, err = b.stack.StorePosts(ctx, posts, func(i int) *v1alpha1.Post {
		return b.finishedPost(i, started.Add(-finishedOver/time.Duration(b.b6Posts)*time.Duration(i)-time.Hour))
	})
	if err != nil {
		return err
	}
	after, err := b.atRest(ctx)
	if err != nil {
		return err
	}
	b.rest = after.perObject(before, posts)
	b.logf("  B6: at rest, a finished post takes %.1f KB of etcd and %.1f KB of kube-apiserver's heap", b.rest.etcd/1000, b.rest.kubeAPIServer/1000)
	return nil
}

// stored returns a post as it is stored, to two of the team's accounts and without a status.
func (b *b6) stored(nth int, at time.Time, what string) *v1alpha1.Post {
	accounts := len(b.team.Connections)
	post := b.content.post(b.team, nth, at, fmt.Sprintf("%s %d", what, nth), nth%accounts, (nth+1)%accounts)
	created := time.Now()
	if at.Before(created) {
		created = at.Add(-time.Minute)
	}
	post.Annotations[v1alpha1.BornAnnotation] = v1alpha1.NewTime(created).String()
	asStored(post, created)
	return post
}

// finishedPost returns a post that was published at the given time.
func (b *b6) finishedPost(nth int, at time.Time) *v1alpha1.Post {
	post := b.stored(nth, at, "finished")
	b.sample.posted.DeepCopyInto(&post.Status)
	when := v1alpha1.NewTime(at)
	post.Status.FinishedAt, post.Status.FinishedOn = &when, at.UTC().Format(time.DateOnly)
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		t.ExternalID, t.PostedAt = strconv.Itoa(firstThreads+2*nth+i), &when
	}
	return post
}

// waiting returns a post that the manager has accepted.
func (b *b6) waiting(nth int, at time.Time, what string) *v1alpha1.Post {
	post := b.stored(nth, at, what)
	b.sample.accepted.DeepCopyInto(&post.Status)
	return post
}

// restart starts the manager when posts are due, and returns the time from its start to the first and to the last
// publication, in seconds.
func (b *b6) restart(ctx context.Context, due int) (first, last float64, err error) {
	at := time.Now().Add(-time.Second)
	posts, err := b.stack.StorePosts(ctx, due, func(i int) *v1alpha1.Post { return b.waiting(i, at, "due") })
	if err != nil {
		return 0, 0, err
	}
	started := time.Now()
	b.stack.StartManager()
	if _, err = b.awaitNone(ctx, notFinished); err != nil {
		return 0, 0, err
	}
	shown, err := b.published(ctx, due)
	if err != nil {
		return 0, 0, err
	}
	first, last = shown[0].CreatedAt.Sub(started).Seconds(), shown[len(shown)-1].CreatedAt.Sub(started).Seconds()
	b.logf("  B6: of %d due posts the first was published %.2f s after the manager's start, the last after %.2f s", due, first, last)
	return measure.Rounded(first, 2), measure.Rounded(last, 2), errors.Join(b.stack.StopHerald(), posts.Remove(ctx), b.forgetShown(ctx))
}

// published returns the published posts. It fails unless the given number of posts was published, once on each account.
func (b *b6) published(ctx context.Context, posts int) ([]sandboxtest.Post, error) {
	shown, err := b.shown(ctx, b.content.platforms)
	if err != nil {
		return nil, err
	}
	texts := map[string]int{}
	for i := range shown {
		texts[shown[i].AccountID+" "+shown[i].Text]++
	}
	if len(shown) != 2*posts || len(texts) != 2*posts {
		return nil, errors.Join(fmt.Errorf("%d posts to two accounts each were published %d times, %d of them different", posts, len(shown), len(texts)), b.whyNotIn(ctx))
	}
	return shown, nil
}

// whyNotIn returns the reasons why the team's posts are unfinished.
func (b *b6) whyNotIn(ctx context.Context) error {
	open, err := b.unfinished(ctx)
	for i := range open {
		for _, t := range open[i].Status.Targets {
			err = errors.Join(err, fmt.Errorf("%s: %s: %s", open[i].Name, t.Reason, t.Message))
		}
	}
	return err
}

// doubt kills the manager while a team has its maximum number of open calls, and starts another one. It returns the
// time from the earliest possible lookup until all outcomes are settled, in seconds, and the new manager's peak memory,
// in MiB.
func (b *b6) doubt(ctx context.Context) (settled, memory float64, err error) {
	// A post to two accounts makes two calls.
	posts := len(b.team.Connections) / 2
	stored, err := b.cutOff(ctx, posts)
	if err != nil {
		return 0, 0, err
	}
	earliest, err := b.earliest(ctx, 2*posts)
	if err != nil {
		return 0, 0, err
	}
	b.stack.StartManager()
	end, err := b.awaitNone(ctx, notFinished)
	if err != nil {
		return 0, 0, errors.Join(err, b.whyNotIn(ctx))
	}
	for _, p := range b.stack.Herald() {
		if p.Name == processes.Manager {
			_, peak := stack.Memory(p.PID())
			memory = inMiB(peak)
		}
	}
	if _, err := b.published(ctx, posts); err != nil {
		return 0, 0, err
	}
	settled = end.Sub(earliest).Seconds()
	b.logf("  B6: %d calls with an unknown outcome are settled %.1f s after the earliest lookup time; the manager took at most %.0f MiB", 2*posts, settled, memory)
	return measure.Rounded(settled, 1), memory, errors.Join(b.stack.StopHerald(), stored.Remove(ctx))
}

// cutOff lets the manager start the posts' calls, and kills it while the platform holds all of them.
func (b *b6) cutOff(ctx context.Context, posts int) (*stack.StoredPosts, error) {
	if err := b.stack.StartHerald(ctx); err != nil {
		return nil, err
	}
	err := b.stack.Sandbox.Fault(ctx, sandboxtest.Fault{
		Platform: string(v1alpha1.PlatformX), Operation: "publish", Kind: "delay", DelayMS: int(heldFor.Milliseconds()), Times: 2 * posts,
	})
	if err != nil {
		return nil, err
	}
	before, err := b.stack.Sandbox.Calls(ctx, string(v1alpha1.PlatformX))
	if err != nil {
		return nil, err
	}
	at := time.Now().Add(doubtLead)
	stored, err := b.stack.StorePosts(ctx, posts, func(i int) *v1alpha1.Post { return b.waiting(2*i, at, "in doubt") })
	if err != nil {
		return nil, err
	}
	err = until(ctx, pollEvery, fmt.Sprintf("%d calls are in progress", 2*posts), func(ctx context.Context) (bool, error) {
		calls, err := b.stack.Sandbox.Calls(ctx, string(v1alpha1.PlatformX))
		return calls["publish"]-before["publish"] >= 2*posts, err
	})
	if err != nil {
		return nil, err
	}
	return stored, b.stack.KillManager()
}

// earliest returns the earliest time at which the last open call can be looked up: before that, it could still be in
// progress.
func (b *b6) earliest(ctx context.Context, calls int) (earliest time.Time, err error) {
	limits := x.New(x.Config{}, transport.New(transport.Options{Registerer: prometheus.NewRegistry()})).Capabilities()
	open, err := b.unfinished(ctx)
	if err != nil {
		return earliest, err
	}
	found := 0
	for i := range open {
		for n := range open[i].Status.Targets {
			a := open[i].Status.Targets[n].Attempt
			if !attempt.IsOpen(a) {
				continue
			}
			found++
			if quiet := a.SendBefore.Add(limits.CallTimeout + clockMargin); quiet.After(earliest) {
				earliest = quiet
			}
		}
	}
	if found != calls {
		return earliest, fmt.Errorf("%d calls were in progress when the manager was killed, and %d have an unknown outcome", calls, found)
	}
	return earliest, nil
}

// clockMargin is the default of the manager's delivery.clockMargin.
const clockMargin = 2 * time.Second

// unfinished returns the team's unfinished posts.
func (b *b6) unfinished(ctx context.Context) ([]v1alpha1.Post, error) {
	var list v1alpha1.PostList
	err := b.stack.Kubernetes.List(ctx, &list, client.InNamespace(b.team.Namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{FieldSelector: "status.finished!=true"},
	})
	return list.Items, err
}
