// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention removes finished posts from the cluster, and later from the archive, when their retention periods
// expire. The leader processes one team at a time. An agenda (agenda.go) lists the due posts, so that a sweep does not
// read all posts.
//
// A post leaves in four idempotent steps: its record is stored in the archive, it is added to its team's lists, its
// finalizer is removed, and it is deleted. After a crash in between, the next sweep continues with the post.
//
// Without a bucket there is no archive. Posts then stay in the cluster for both retention periods.
package retention

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting/retention"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts/status,verbs=patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch

// Archive stores the outcome of finished posts.
type Archive interface {
	// SaveRecords stores posts' current records, and List adds the posts to their team's lists. Both are idempotent.
	SaveRecords(ctx context.Context, posts []*v1alpha1.Post) error
	List(ctx context.Context, team *v1alpha1.Team, posts ...*v1alpha1.Post) error
	// Expire removes expired posts from the archive of a team, up to a limit, and reports whether more are left.
	Expire(ctx context.Context, team *v1alpha1.Team, times retention.Times) (more bool, err error)
}

// Options configures the sweep. Client, APIReader, Clock and Owner are required.
type Options struct {
	// Client reads teams from the cache and writes. APIReader reads posts, because finished posts are not cached.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.WithTicker
	// Owner returns the team that owns a namespace, or nil.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Namespaces are the namespaces that this installation serves.
	Namespaces configv1alpha1.Namespaces
	// Policy is the retention policy of the installation.
	Policy retention.Policy
	// Archive stores posts that leave the cluster. It is nil without a bucket.
	Archive Archive
	// PostsPerSecond is the rate limit for posts that leave (default 20).
	PostsPerSecond int
	// ClockMargin is the allowed clock skew (default 2 s).
	ClockMargin time.Duration
	// Metrics exposes the state of the sweeps. If nil, nothing is exposed.
	Metrics *Metrics
	// Failpoint is called at named points of the removal, for tests that kill the process there. If nil, nothing happens.
	Failpoint func(point string)
}

// Failpoints of the removal; see Options.Failpoint.
const (
	PointBeforeArchive = "retention-before-archive"
	PointAfterRecord   = "retention-after-record"
	PointAfterArchive  = "retention-after-archive"
	PointAfterRelease  = "retention-after-release"
	PointAfterDelete   = "retention-after-delete"
)

// Sweeper removes posts whose retention period has expired.
type Sweeper struct {
	Options

	pace *rate.Limiter
	// teams holds the agenda of each team, by namespace. Only the sweep uses it.
	teams map[string]*agenda
	// expireAt is the time of the archive's next expiry. unexpired is true if the last one left expired posts.
	expireAt  time.Time
	unexpired bool
}

// New returns a Sweeper. It returns an error if a required option is missing.
func New(o Options) (*Sweeper, error) {
	if o.Client == nil || o.APIReader == nil || o.Clock == nil || o.Owner == nil {
		return nil, errors.New("retention needs Client, APIReader, Clock and Owner")
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	o.ClockMargin = cmp.Or(o.ClockMargin, 2*time.Second)
	perSecond := cmp.Or(o.PostsPerSecond, 20)
	return &Sweeper{Options: o, pace: rate.NewLimiter(rate.Limit(perSecond), perSecond), teams: map[string]*agenda{}}, nil
}

const (
	// firstSweep delays the first sweep, because the manager has posts to send after startup.
	firstSweep = 15 * time.Second
	// sweepEvery is the pause between two sweeps. Due posts leave within this time, as far as PostsPerSecond allows.
	sweepEvery = 30 * time.Second
	// roundFor limits the time before a long sweep looks for due posts again: one team may have a backlog that takes
	// hours, and another may have posts that must leave within two minutes.
	roundFor = time.Minute
	// sweepFor limits a sweep that always has more to do, so that it ends before its deadline.
	sweepFor = pacing.SweepTimeout / 2
)

// SetupWithManager adds the sweep to a manager.
func (s *Sweeper) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(pacing.Sweep{
		Name: "retention", First: firstSweep, Every: sweepEvery, Within: pacing.SweepTimeout, Clock: s.Clock,
		Do: func(ctx context.Context) error {
			err := s.sweep(ctx)
			if err != nil {
				s.Metrics.failed()
			}
			return err
		},
	})
}
