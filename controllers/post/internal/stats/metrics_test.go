// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/test/must"
)

var nine = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// videos is a platform that publishes videos in two steps.
type videos struct{ platforms.Publisher }

func (videos) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{CallTimeout: 10 * time.Second, PreparedTTL: 24 * time.Hour}
}

func (videos) Prepares(c platforms.Content) bool                                 { return len(c.Media) > 0 }
func (videos) Prepare(context.Context, platforms.Job) (string, *platforms.Error) { return "", nil }

// unfinished returns a post with a video and one target.
func unfinished(namespace, name string, due time.Duration, change ...func(*v1alpha1.Post)) *v1alpha1.Post {
	p := &v1alpha1.Post{}
	p.Namespace, p.Name, p.UID = namespace, name, "u"
	p.CreationTimestamp = metav1.NewTime(nine.Add(-30 * time.Minute))
	p.Spec.ScheduledAt = v1alpha1.NewTimePtr(nine.Add(due))
	p.Spec.Category, p.Spec.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}}
	p.Spec.Targets = []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "c"}}}
	p.Status.Targets = []v1alpha1.TargetStatus{{Platform: v1alpha1.PlatformYouTube, State: v1alpha1.TargetPending}}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Accepted"})
	for _, c := range change {
		c(p)
	}
	return p
}

func film(namespace string) *v1alpha1.Media {
	m := &v1alpha1.Media{}
	m.Namespace, m.Name = namespace, "film"
	m.Spec.FileName, m.Spec.MimeType = "film.mp4", "video/mp4"
	m.Status.Phase, m.Status.SizeBytes = v1alpha1.MediaUploaded, 600<<20
	return m
}

func connected(namespace string) *v1alpha1.Connection {
	c := &v1alpha1.Connection{}
	c.Namespace, c.Name, c.Spec.Platform = namespace, "c", v1alpha1.PlatformYouTube
	return c
}

// limitedApp returns a connection with an app-wide rate limit.
func limitedApp(app string, d time.Duration) *v1alpha1.Connection {
	c := connected("team")
	c.Name = app + d.String()
	c.Status.App, c.Status.AppRateLimitedUntil = app, v1alpha1.NewTimePtr(nine.Add(d))
	return c
}

// suspendedTarget makes the target wait for the end of its team's suspension.
func suspendedTarget(p *v1alpha1.Post) {
	p.Status.Targets[0].Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonSuspended, Problem: "suspended"}
}

// sentAt opens an attempt.
func sentAt(ago time.Duration) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		p.Status.Targets[0].Attempt = &v1alpha1.Attempt{Number: 1, ID: "a", SendBefore: v1alpha1.NewTime(nine.Add(-ago))}
	}
}

// measured returns metrics whose source counts the objects, with that source.
func measured(t *testing.T, objects ...client.Object) (*Metrics, *Source, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m := New(registry)
	clock := clocktesting.NewFakeClock(nine)
	registered := platforms.Registry{v1alpha1.PlatformYouTube: videos{}}
	apps := limits.New(&limits.Options{Apps: credentials.Apps{v1alpha1.PlatformYouTube: {ID: "herald"}, v1alpha1.PlatformX: {ID: "herald"}}, Clock: clock})
	none := func() int { return 0 }
	s := &Source{
		Objects: &Objects{}, Clock: clock, Platforms: registered,
		Settings: delivery.Settings{
			StartingDeadline: time.Hour, LongestDelay: 6 * time.Hour, PrepareAhead: 30 * time.Minute, SendWindow: 5 * time.Second, ClockMargin: 2 * time.Second,
		},
		Uploads: prepare.New(prepare.Options{Files: &store.Store{}, Platforms: registered, Clock: clock, MaxUploads: 32}),
		Posts:   none, Turns: none, Claims: func() (limit, waiting int) { return 32, 0 },
		Unsaved: func() map[string]int { return nil }, LimitedApps: apps.LimitedApps,
	}
	for _, object := range objects {
		if object.GetUID() == "" || object.GetUID() == "u" {
			object.SetUID(types.UID(object.GetNamespace() + "/" + object.GetName()))
		}
		s.Objects.posts.OnAdd(object, true)
		s.Objects.media.OnAdd(object, true)
		s.Objects.connections.OnAdd(object, true)
	}
	elected := make(chan struct{})
	close(elected)
	s.Elected = elected
	m.Watch(s)
	return m, s, registry
}

func TestGauges(t *testing.T) {
	text := func(p *v1alpha1.Post) { p.Spec.Category, p.Spec.Video = v1alpha1.CategoryText, nil }
	immediate := func(p *v1alpha1.Post) { p.Spec.ScheduledAt = nil }
	for _, tt := range []struct {
		reason  string
		objects []client.Object
		metrics []string
		want    string
	}{
		{
			"a suspended team's due posts are counted separately",
			[]client.Object{
				unfinished("acme", "a", -time.Hour, text, suspendedTarget), unfinished("acme", "b", -time.Minute, text), unfinished("acme", "c", time.Minute, text),
				unfinished("acme", "d", -time.Hour, text, suspendedTarget, sentAt(time.Minute)),
			},
			[]string{"herald_due_posts", "herald_suspended_posts"},
			`herald_due_posts{namespace="acme"} 2
			herald_suspended_posts{namespace="acme"} 1`,
		},
		{
			"posts that wait for the store are counted by purpose, with 0 for teams without any",
			[]client.Object{
				connected("acme"), connected("beta"), unfinished("acme", "a", -time.Hour, text, lookupTarget), unfinished("acme", "b", -time.Hour, text),
			},
			[]string{"herald_posts_waiting_for_store"},
			`herald_posts_waiting_for_store{for="lookup",namespace="acme"} 1
			herald_posts_waiting_for_store{for="lookup",namespace="beta"} 0
			herald_posts_waiting_for_store{for="record",namespace="acme"} 0
			herald_posts_waiting_for_store{for="record",namespace="beta"} 0`,
		},
		{
			"posts are counted by team and phase",
			[]client.Object{
				unfinished("acme", "a", time.Hour, text), unfinished("acme", "b", time.Hour, text), unfinished("beta", "c", -time.Minute, text, sentAt(0)),
				unfinished("beta", "d", time.Hour, func(p *v1alpha1.Post) { p.Spec.Draft = true }),
			},
			[]string{"herald_unfinished_posts"},
			`herald_unfinished_posts{namespace="acme",phase="scheduled"} 2
			herald_unfinished_posts{namespace="beta",phase="draft"} 1
			herald_unfinished_posts{namespace="beta",phase="processing"} 1`,
		},
		{
			"due posts are counted until they are done, with the age of the oldest",
			[]client.Object{
				unfinished("acme", "a", -time.Minute, text), unfinished("acme", "b", -2*time.Minute, text), unfinished("acme", "c", time.Minute, text),
				unfinished("beta", "d", 0, text, immediate),
			},
			[]string{"herald_due_posts", "herald_oldest_due_post_age_seconds"},
			`herald_due_posts{namespace="acme"} 2
			herald_due_posts{namespace="beta"} 1
			herald_oldest_due_post_age_seconds{namespace="acme"} 120
			herald_oldest_due_post_age_seconds{namespace="beta"} 1800`,
		},
		{
			"a former draft is due since its promotion",
			[]client.Object{unfinished("acme", "a", 0, text, immediate, func(p *v1alpha1.Post) {
				p.Generation, p.Status.ObservedGeneration = 2, 2
				p.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(nine.Add(time.Hour - time.Minute))
			})},
			[]string{"herald_oldest_due_post_age_seconds"},
			`herald_oldest_due_post_age_seconds{namespace="acme"} 60`,
		},
		{
			"drafts and undecided targets are not due",
			[]client.Object{
				unfinished("acme", "a", -time.Minute, text, func(p *v1alpha1.Post) { p.Spec.Draft = true }),
				unfinished("acme", "b", -time.Minute, text, func(p *v1alpha1.Post) { p.Status.Targets[0].State = v1alpha1.TargetUndecided }),
			},
			[]string{"herald_due_posts", "herald_undecided_targets"},
			`herald_undecided_targets{namespace="acme",platform="youtube"} 1`,
		},
		{
			"open attempts are counted within and past their send window",
			[]client.Object{unfinished("acme", "a", -time.Minute, text, sentAt(0)), unfinished("acme", "b", -time.Minute, text, sentAt(time.Minute))},
			[]string{"herald_open_attempts"},
			`herald_open_attempts{namespace="acme",platform="youtube",window="past"} 1
			herald_open_attempts{namespace="acme",platform="youtube",window="taken"} 0
			herald_open_attempts{namespace="acme",platform="youtube",window="within"} 1`,
		},
		{
			"an accepted call is counted as accepted, not past its window, and its post is not due",
			[]client.Object{unfinished("acme", "a", -time.Hour, text, sentAt(time.Minute), func(p *v1alpha1.Post) {
				p.Status.Targets[0].Attempt.OperationID = "video"
			}), unfinished("acme", "b", -time.Minute, text, sentAt(time.Minute))},
			[]string{"herald_open_attempts", "herald_due_posts", "herald_oldest_due_post_age_seconds"},
			`herald_due_posts{namespace="acme"} 1
			herald_oldest_due_post_age_seconds{namespace="acme"} 60
			herald_open_attempts{namespace="acme",platform="youtube",window="past"} 1
			herald_open_attempts{namespace="acme",platform="youtube",window="taken"} 1
			herald_open_attempts{namespace="acme",platform="youtube",window="within"} 0`,
		},
		{
			"at the expected 1 MiB/s, 600 MiB are in time for one post but not for the other",
			[]client.Object{film("acme"), unfinished("acme", "a", 10*time.Minute), unfinished("acme", "b", 9*time.Minute)},
			[]string{"herald_late_uploads", "herald_pending_upload_bytes"},
			`herald_late_uploads{namespace="acme",platform="youtube"} 1
			herald_pending_upload_bytes{namespace="acme",platform="youtube"} 1.2582912e+09`,
		},
		{
			"prepared, rejected, draft, later and fileless posts do not have pending uploads; an immediate post is never late",
			[]client.Object{
				film("acme"),
				unfinished("acme", "ready", time.Minute, func(p *v1alpha1.Post) {
					p.Status.Targets[0].Prepared = &v1alpha1.Prepared{ContentHash: "h", Complete: true}
				}),
				unfinished("acme", "refused", time.Minute, func(p *v1alpha1.Post) { p.Status.Conditions[0].Status = metav1.ConditionFalse }),
				unfinished("acme", "draft", time.Minute, func(p *v1alpha1.Post) { p.Spec.Draft = true }),
				unfinished("acme", "later", 25*time.Hour),
				unfinished("acme", "sent", -time.Minute, sentAt(0)),
				unfinished("beta", "fileless", time.Minute),
				unfinished("acme", "immediate", 0, immediate),
			},
			[]string{"herald_late_uploads", "herald_pending_upload_bytes"},
			`herald_late_uploads{namespace="acme",platform="youtube"} 0
			herald_pending_upload_bytes{namespace="acme",platform="youtube"} 6.291456e+08`,
		},
		{
			"Herald's app is limited on one platform",
			[]client.Object{connected("team"), limitedApp("herald", time.Hour)},
			[]string{"herald_app_held"},
			`herald_app_held{platform="x"} 0
			herald_app_held{platform="youtube"} 1`,
		},
		{
			"expired limits and other apps' limits do not count",
			[]client.Object{limitedApp("herald", 0), limitedApp("", time.Hour), limitedApp("other", time.Hour)},
			[]string{"herald_app_held"},
			`herald_app_held{platform="x"} 0
			herald_app_held{platform="youtube"} 0`,
		},
		{
			"empty queues are reported as 0", nil,
			[]string{"herald_queue_depth"},
			`herald_queue_depth{queue="claims"} 0
			herald_queue_depth{queue="posts"} 0
			herald_queue_depth{queue="turns"} 0
			herald_queue_depth{queue="uploads"} 0`,
		},
	} {
		_, _, registry := measured(t, tt.objects...)
		if diff := cmp.Diff(lines(tt.want), values(t, registry, tt.metrics...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// lookupTarget makes a target wait for the record of an earlier post.
func lookupTarget(p *v1alpha1.Post) {
	p.Status.Targets[0].Blocked = &v1alpha1.Blocked{Reason: v1alpha1.ReasonRecordUnavailable}
}

// TestWaitingRecords: records that could not be saved are counted by team, and queued items by queue.
func TestWaitingRecords(t *testing.T) {
	_, s, registry := measured(t, connected("acme"), connected("beta"))
	s.Unsaved = func() map[string]int { return map[string]int{"acme": 2} }
	s.Posts, s.Turns, s.Claims = func() int { return 3 }, func() int { return 4 }, func() (limit, waiting int) { return 6, 5 }
	want := `herald_claims_limit 6
		herald_posts_waiting_for_store{for="lookup",namespace="acme"} 0
		herald_posts_waiting_for_store{for="lookup",namespace="beta"} 0
		herald_posts_waiting_for_store{for="record",namespace="acme"} 2
		herald_posts_waiting_for_store{for="record",namespace="beta"} 0
		herald_queue_depth{queue="claims"} 5
		herald_queue_depth{queue="posts"} 3
		herald_queue_depth{queue="turns"} 4
		herald_queue_depth{queue="uploads"} 0`
	if diff := cmp.Diff(lines(want), values(t, registry, "herald_claims_limit", "herald_posts_waiting_for_store", "herald_queue_depth")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSeriesOfTeams checks that series start at zero with an account and are deleted with the team.
func TestSeriesOfTeams(t *testing.T) {
	m, _, registry := measured(t, connected("acme"), connected("beta"))
	names := []string{"herald_late_targets_total", "herald_records_abandoned_total", "herald_target_results_total"}
	values(t, registry, names...)
	m.Deliveries.ObserveLateness(connected("acme"), nine.Add(-time.Minute), nine)
	m.Deliveries.ObserveLateness(connected("acme"), nine.Add(-9*time.Second), nine)
	failed := unfinished("gone", "c", 0, func(p *v1alpha1.Post) {
		p.Status.Targets[0].State, p.Status.Targets[0].Blocked = v1alpha1.TargetFailed, &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit}
	})
	m.Deliveries.Changed(failed, &v1alpha1.PostStatus{})
	m.Deliveries.Changed(failed, &failed.Status)
	all := `herald_late_targets_total{namespace="acme",platform="youtube"} 1
		herald_late_targets_total{namespace="beta",platform="youtube"} 0
		herald_records_abandoned_total{namespace="acme"} 0
		herald_records_abandoned_total{namespace="beta"} 0
		herald_target_results_total{namespace="acme",platform="youtube",reason="",state="posted"} 0
		herald_target_results_total{namespace="acme",platform="youtube",reason="Refused",state="failed"} 0
		herald_target_results_total{namespace="beta",platform="youtube",reason="",state="posted"} 0
		herald_target_results_total{namespace="beta",platform="youtube",reason="Refused",state="failed"} 0
		herald_target_results_total{namespace="gone",platform="youtube",reason="PlanLimit",state="failed"} 1`
	if diff := cmp.Diff(lines(all), values(t, registry, names...)); diff != "" {
		t.Errorf("a result counts once, and ten seconds are no delay (-want +got):\n%s", diff)
	}
	m.scrapes.setAccounts(map[account]bool{{"gone", "youtube"}: true, {"beta", "youtube"}: true})
	m.scrapes.setAccounts(map[account]bool{{"beta", "youtube"}: true})
	left := `herald_late_targets_total{namespace="beta",platform="youtube"} 0
		herald_records_abandoned_total{namespace="beta"} 0
		herald_target_results_total{namespace="beta",platform="youtube",reason="",state="posted"} 0
		herald_target_results_total{namespace="beta",platform="youtube",reason="Refused",state="failed"} 0`
	m.scrapes.sources = nil
	if diff := cmp.Diff(lines(left), values(t, registry, names...)); diff != "" {
		t.Errorf("series of deleted teams remain (-want +got):\n%s", diff)
	}
}

// TestOnlyTheLeaderCounts: another replica has the same posts in its cache, or would fill the cache for the scrape.
func TestOnlyTheLeaderCounts(t *testing.T) {
	m, s, registry := measured(t, unfinished("acme", "a", time.Hour))
	never, closed := make(chan struct{}), make(chan struct{})
	close(closed)
	for reason, is := range map[string]struct{ elected, stopping chan struct{} }{
		"the replica waits for the lease":                             {never, never},
		"the replica has released its lease, and another one reports": {closed, closed},
		"the replica stopped before it ever held the lease":           {never, closed},
	} {
		other := *s
		other.Elected, other.Stopping = is.elected, is.stopping
		m.scrapes.sources = nil
		m.Watch(&other)
		if n, err := testutil.GatherAndCount(registry, "herald_unfinished_posts", "herald_queue_depth"); err != nil || n != 0 {
			t.Errorf("%s: exported %d series, %v", reason, n, err)
		}
	}
}

// TestSeveralSources counts the posts of two shards, one of which is given up.
func TestSeveralSources(t *testing.T) {
	m, _, registry := measured(t, unfinished("acme", "a", time.Hour), unfinished("acme", "b", time.Hour))
	_, second, _ := measured(t, unfinished("beta", "c", time.Hour))
	stop := m.Watch(second)
	want := []string{`herald_unfinished_posts{namespace="acme",phase="scheduled"} 2`, `herald_unfinished_posts{namespace="beta",phase="scheduled"} 1`}
	if diff := cmp.Diff(want, values(t, registry, "herald_unfinished_posts")); diff != "" {
		t.Errorf("each post counts once (-want +got):\n%s", diff)
	}
	stop()
	if diff := cmp.Diff(want[:1], values(t, registry, "herald_unfinished_posts")); diff != "" {
		t.Errorf("another process counts the posts of the shard that was given up (-want +got):\n%s", diff)
	}
}

// lines returns the lines of text without indentation.
func lines(text string) (all []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// values returns the named metrics in the exposition format, without comments.
func values(t *testing.T, registry *prometheus.Registry, names ...string) []string {
	t.Helper()
	text, err := testutil.GatherAndFormat(registry, expfmt.TypeTextPlain, names...)
	must.Succeed(t, err)
	var all []string
	for _, line := range lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}
