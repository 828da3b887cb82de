// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/forecast"
)

// gauges are the metrics that each scrape computes from the unfinished posts in the cache. Only the leading manager
// reports them, so the sum over all managers is the installation's value.
type gauges struct {
	posts, due, overdue        *prometheus.Desc
	suspended, waiting         *prometheus.Desc
	attempts, undecided        *prometheus.Desc
	lateUploads, bytes, upload *prometheus.Desc
	queue, appLimited, claims  *prometheus.Desc
}

func newGauges() gauges {
	return gauges{
		posts: prometheus.NewDesc("herald_unfinished_posts",
			"Posts that are not finished, by the team's namespace and by phase.", []string{labelNamespace, "phase"}, nil),
		due: prometheus.NewDesc("herald_due_posts",
			"Due posts that are not finished, by the team's namespace. Excludes posts that wait only for a user's answer, for the end of a suspension, or for a platform that processes an accepted post.",
			[]string{labelNamespace}, nil),
		suspended: prometheus.NewDesc("herald_suspended_posts",
			"Due posts that wait because their team is suspended, by the team's namespace.", []string{labelNamespace}, nil),
		waiting: prometheus.NewDesc("herald_posts_waiting_for_store",
			"Posts that wait for the store of media files, by the team's namespace and by purpose: record (the outcome of a finished or deleted post is to be stored) "+
				"or lookup (it is not known whether an earlier post of that name was published).", []string{labelNamespace, "for"}, nil),
		overdue: prometheus.NewDesc("herald_oldest_due_post_age_seconds",
			"Time since the oldest post of herald_due_posts became due, by the team's namespace.", []string{labelNamespace}, nil),
		attempts: prometheus.NewDesc("herald_open_attempts",
			"Calls whose outcome is not recorded, by the team's namespace, the platform and the window: within it, past it (looked up), or accepted and processed by the platform.",
			[]string{labelNamespace, labelPlatform, "window"}, nil),
		undecided: prometheus.NewDesc("herald_undecided_targets",
			"Targets whose outcome only a user can determine, by the team's namespace and the platform.",
			[]string{labelNamespace, labelPlatform}, nil),
		lateUploads: prometheus.NewDesc("herald_late_uploads",
			"Targets of posts scheduled for the next 24 hours whose files will not be ready in time at the rate that is measured, by the team's namespace and the platform.",
			[]string{labelNamespace, labelPlatform}, nil),
		bytes: prometheus.NewDesc("herald_pending_upload_bytes",
			"Bytes of media files that are to be uploaded for the posts of the next 24 hours, by the team's namespace and the platform.",
			[]string{labelNamespace, labelPlatform}, nil),
		upload: prometheus.NewDesc("herald_upload_rate_bytes_per_second",
			"Rate of one upload until its post can be published, by platform and by kind (image or video): "+
				"a mean of finished uploads, whose weight halves every 15 minutes.",
			[]string{labelPlatform, "kind"}, nil),
		queue: prometheus.NewDesc("herald_queue_depth",
			"Length of each queue: posts to reconcile, turns for a worker and for an account, claims for the Kubernetes API, or uploads for a slot.",
			[]string{"queue"}, nil),
		claims: prometheus.NewDesc("herald_claims_limit",
			"Maximum number of concurrent claim writes: it falls when a write takes the Kubernetes API more than a second, and rises below 0.3 seconds.", nil, nil),
		appLimited: prometheus.NewDesc("herald_app_held",
			"1 while a platform accepts no calls from Herald's own app, so that the posts of all teams with that app wait; else 0. By platform.",
			[]string{labelPlatform}, nil),
	}
}

// Source provides what each scrape counts.
type Source struct {
	// Objects holds the counted objects.
	Objects *Objects
	// Clock returns the time, and Settings holds the time limits of deliveries.
	Clock    clock.PassiveClock
	Settings delivery.Settings
	// Platforms holds the publishers of this process.
	Platforms platforms.Registry
	// Uploads forecasts the uploads.
	Uploads Uploads
	// Posts returns the number of posts that wait to be reconciled, and Turns the number that wait for a turn to be
	// claimed.
	Posts, Turns func() int
	// Claims returns the limit on concurrent claims, and the number of waiting claims.
	Claims func() (limit, waiting int)
	// Unsaved returns the number of posts whose record could not be saved, by namespace.
	Unsaved func() map[string]int
	// LimitedApps reports, for each platform with an app, whether connections show a rate limit on it.
	LimitedApps func(connections func(func(*v1alpha1.Connection)), now time.Time) map[v1alpha1.Platform]bool
	// Elected is closed on this process's election, Stopping at its shutdown, when another process takes over the gauges.
	Elected, Stopping <-chan struct{}
}

// Uploads forecasts the uploads of posts; see prepare.Preparer.
type Uploads interface {
	// Waiting returns the number of uploads that wait for a place.
	Waiting() int
	// Rates returns the measured rate of one upload of each kind, in bytes per second.
	Rates() map[forecast.Kind]float64
	// Outlook returns the forecasts for the posts.
	Outlook(posts func(func(*v1alpha1.Post)), media map[types.NamespacedName]*v1alpha1.Media, settings *delivery.Settings) map[prepare.OutlookKey]prepare.Outlook
}

type account struct {
	namespace, platform string
}

type snapshot struct {
	phases     map[[2]string]int
	due        map[string]int
	suspended  map[string]int
	waiting    map[[2]string]int
	overdue    map[string]time.Duration
	attempts   map[account]map[string]int
	undecided  map[account]int
	uploads    map[prepare.OutlookKey]prepare.Outlook
	rates      map[[2]string]float64
	queues     map[string]int
	claims     int
	accounts   map[account]bool
	appLimited map[v1alpha1.Platform]bool
}

// snapshot counts the posts in the cache. It does not return an error, which would fail the scrape of all other
// metrics.
func (s *Source) snapshot() *snapshot {
	c := &snapshot{
		phases: map[[2]string]int{}, due: map[string]int{}, suspended: map[string]int{}, overdue: map[string]time.Duration{}, waiting: map[[2]string]int{},
		attempts: map[account]map[string]int{}, undecided: map[account]int{}, accounts: map[account]bool{}, rates: map[[2]string]float64{},
		queues: map[string]int{"posts": s.Posts(), "turns": s.Turns(), "uploads": s.Uploads.Waiting()},
	}
	c.claims, c.queues["claims"] = s.Claims()
	s.Objects.connections.each(func(conn *v1alpha1.Connection) {
		c.accounts[account{conn.Namespace, string(conn.Spec.Platform)}] = true
		c.waiting[[2]string{conn.Namespace, forRecord}], c.waiting[[2]string{conn.Namespace, forLookup}] = 0, 0
	})
	for namespace, n := range s.Unsaved() {
		c.waiting[[2]string{namespace, forRecord}] = n
	}
	now := s.Clock.Now()
	c.appLimited = s.LimitedApps(s.Objects.connections.each, now)
	s.Objects.posts.each(func(post *v1alpha1.Post) { s.addPost(c, post, now) })
	files := map[types.NamespacedName]*v1alpha1.Media{}
	s.Objects.media.each(func(file *v1alpha1.Media) { files[client.ObjectKeyFromObject(file)] = file })
	c.uploads = s.Uploads.Outlook(s.Objects.posts.each, files, &s.Settings)
	for kind, rate := range s.Uploads.Rates() {
		name := "image"
		if kind.Video {
			name = "video"
		}
		c.rates[[2]string{kind.Platform, name}] = rate
	}
	return c
}

func (s *Source) addPost(c *snapshot, post *v1alpha1.Post, now time.Time) {
	phase := posting.Of(post).Phase()
	c.phases[[2]string{post.Namespace, string(phase)}]++
	switch age := now.Sub(s.dueSince(post, now)); {
	case age <= 0 || phase != v1alpha1.PhaseScheduled && phase != v1alpha1.PhaseProcessing:
	case waitsSuspended(post):
		c.suspended[post.Namespace]++
	case waitsForPlatform(post):
	default:
		c.due[post.Namespace]++
		c.overdue[post.Namespace] = max(c.overdue[post.Namespace], age)
	}
	if waitsForLookup(post) {
		c.waiting[[2]string{post.Namespace, forLookup}]++
	}
	for n := range post.Status.Targets {
		t := &post.Status.Targets[n]
		of := account{post.Namespace, string(t.Platform)}
		if attempt.IsOpen(t.Attempt) {
			if c.attempts[of] == nil {
				c.attempts[of] = map[string]int{"within": 0, "past": 0, "taken": 0}
			}
			c.attempts[of][s.windowOf(t, now)]++
		}
		if attempt.Undecided(t) {
			c.undecided[of]++
		}
	}
}

// The purposes for which posts wait for the store.
const (
	forRecord = "record"
	forLookup = "lookup"
)

func waitsForLookup(post *v1alpha1.Post) bool {
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; !attempt.Settled(t) && attempt.BlockedBy(t, v1alpha1.ReasonRecordUnavailable) {
			return true
		}
	}
	return false
}

// waitsSuspended reports whether a post waits for the end of its team's suspension, and has no open attempt to look up.
func waitsSuspended(post *v1alpha1.Post) (waits bool) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if attempt.IsOpen(t.Attempt) {
			return false
		}
		waits = waits || !attempt.Settled(t) && attempt.BlockedBy(t, v1alpha1.ReasonSuspended)
	}
	return waits
}

// dueSince returns the time when a post became due. A former draft became due when it stopped being a draft.
func (s *Source) dueSince(post *v1alpha1.Post, now time.Time) time.Time {
	until, _ := posting.Of(post).TryUntil(now, s.Settings.StartingDeadline)
	for i := range post.Status.Targets {
		if t := &post.Status.Targets[i]; t.TryUntil != nil {
			until = attempt.Deadline(t)
		}
	}
	return until.Add(-s.Settings.StartingDeadline)
}

// waitsForPlatform reports whether platforms are processing all unsettled targets of a post, as YouTube does for hours
// with a long video. Users do not need to act.
func waitsForPlatform(post *v1alpha1.Post) (waits bool) {
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		if attempt.Settled(t) {
			continue
		}
		if !attempt.IsOpen(t.Attempt) || t.Attempt.OperationID == "" {
			return false
		}
		waits = true
	}
	return waits
}

// windowOf returns the window of an open attempt: "within" while the call may be in progress, "past" after that, or
// "taken" if the platform has accepted it.
func (s *Source) windowOf(t *v1alpha1.TargetStatus, now time.Time) string {
	if t.Attempt.OperationID != "" {
		return "taken"
	}
	timing := attempt.Timing{SendWindow: s.Settings.SendWindow, ClockMargin: s.Settings.ClockMargin}
	if p, ok := s.Platforms[t.Platform]; ok {
		timing.CallTimeout = p.Capabilities().CallTimeout
	}
	if attempt.CallFinished(t.Attempt, timing, now) {
		return "past"
	}
	return "within"
}

func (g *gauges) collect(ch chan<- prometheus.Metric, c *snapshot) {
	say := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for of, n := range c.phases {
		say(g.posts, float64(n), of[0], of[1])
	}
	for namespace, n := range c.due {
		say(g.due, float64(n), namespace)
		say(g.overdue, c.overdue[namespace].Seconds(), namespace)
	}
	for namespace, n := range c.suspended {
		say(g.suspended, float64(n), namespace)
	}
	for of, n := range c.waiting {
		say(g.waiting, float64(n), of[0], of[1])
	}
	for of, windows := range c.attempts {
		for window, n := range windows {
			say(g.attempts, float64(n), of.namespace, of.platform, window)
		}
	}
	for of, n := range c.undecided {
		say(g.undecided, float64(n), of.namespace, of.platform)
	}
	for of, outlook := range c.uploads {
		say(g.lateUploads, float64(outlook.Late), of.Namespace, string(of.Platform))
		say(g.bytes, float64(outlook.Bytes), of.Namespace, string(of.Platform))
	}
	for of, rate := range c.rates {
		say(g.upload, rate, of[0], of[1])
	}
	for queue, n := range c.queues {
		say(g.queue, float64(n), queue)
	}
	say(g.claims, float64(c.claims))
	for platform, limited := range c.appLimited {
		value := 0.0
		if limited {
			value = 1
		}
		say(g.appLimited, value, string(platform))
	}
}
