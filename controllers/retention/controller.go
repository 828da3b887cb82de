// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention lets finished posts leave the cluster when their time there is over,
// and the archive when their time there is. The leader works, a team at a time, by an
// agenda (agenda.go) which says what is due without reading all posts again.
//
// A post leaves in four steps, each of which may be done again: what became of it is in
// the archive, its team's lists have it, its finalizer comes off, it is deleted. Whoever
// dies in between leaves a post that the next sweep takes up.
//
// Without a bucket there is no archive. Posts stay in the cluster for both times then.
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
	"github.com/herald-social/herald/internal/deadline"
	"github.com/herald-social/herald/internal/sweeps"
	"github.com/herald-social/herald/posting/retention"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts/status,verbs=patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch

// Archive keeps what became of finished posts.
type Archive interface {
	// SaveRecords has the records of posts kept, as they stand now, and List enters those posts
	// in the lists of their team. Both may be repeated.
	SaveRecords(ctx context.Context, posts []*v1alpha1.Post) error
	List(ctx context.Context, team *v1alpha1.Team, posts ...*v1alpha1.Post) error
	// Expire removes what is over its time from the archive of a team, some of it if
	// there is much, and returns whether there is more.
	Expire(ctx context.Context, team *v1alpha1.Team, times retention.Times) (more bool, err error)
}

// Options is what the sweep needs. Client, APIReader, Clock and Owner are required.
type Options struct {
	// Client reads teams from the cache and writes to the API server. APIReader reads
	// posts, which are not cached once they are finished.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.WithTicker
	// Owner returns the team that owns a namespace, or nil.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Namespaces are those that this installation serves.
	Namespaces configv1alpha1.Namespaces
	// Policy is what the installation says about retention.
	Policy retention.Policy
	// Archive takes what leaves the cluster; nil where there is no bucket.
	Archive Archive
	// PostsPerSecond bounds how many posts leave in a second (default 20).
	PostsPerSecond int
	// ClockMargin is how far clocks may differ (default 2 s).
	ClockMargin time.Duration
	// Metrics tells what is done; nil tells nothing.
	Metrics *Metrics
	// Failpoint is called at named points of the way out, for tests that kill the
	// process there; nil does nothing.
	Failpoint func(point string)
}

// Points of the way out at which a test may kill the process; see Options.Failpoint.
const (
	PointBeforeArchive = "retention-before-archive"
	PointAfterRecord   = "retention-after-record"
	PointAfterArchive  = "retention-after-archive"
	PointAfterRelease  = "retention-after-release"
	PointAfterDelete   = "retention-after-delete"
)

// Sweeper lets posts leave.
type Sweeper struct {
	Options

	pace *rate.Limiter
	// teams holds what is known of each team's posts, by its namespace. Only the sweep
	// uses it.
	teams map[string]*agenda
	// expireAt is when the archive is next looked through. unexpired says that something was
	// left there the last time that is over its time.
	expireAt  time.Time
	unexpired bool
}

// New returns a sweeper; an error says which of the required options is missing.
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
	// firstSweep is how long after its start a manager sweeps for the first time: at the
	// start it has posts to send.
	firstSweep = 15 * time.Second
	// sweepEvery is the pause between two sweeps. What is due leaves within this time,
	// as long as not more is due than the pace allows.
	sweepEvery = 30 * time.Second
	// roundFor is after how long a sweep that has much to do looks again for what is due: of
	// one team, a backlog of hours, and of another one what must leave within two minutes.
	roundFor = time.Minute
	// sweepFor is when a sweep ends that always has more to do, before it is cut off.
	sweepFor = deadline.Sweep / 2
)

// SetupWithManager adds the sweep to a manager.
func (s *Sweeper) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(sweeps.Sweep{
		Name: "retention", First: firstSweep, Every: sweepEvery, Within: deadline.Sweep, Clock: s.Clock,
		Do: func(ctx context.Context) error {
			err := s.sweep(ctx)
			if err != nil {
				s.Metrics.failed()
			}
			return err
		},
	})
}
