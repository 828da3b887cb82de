// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/records"
	"github.com/herald-social/herald/controllers/post/internal/stats"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/rollback"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
)

// Tokens returns access tokens of connections.
type Tokens interface {
	// Token returns the connection's current token.
	Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error)
	// Prefetch reads the connection's token unless the cached one can be used until the given time. It returns
	// the same errors as Token.
	Prefetch(ctx context.Context, conn *v1alpha1.Connection, until time.Time) error
	// Forget drops the cached token of a connection after the platform refused it.
	Forget(conn *v1alpha1.Connection)
}

// The interfaces to media files; see package internal/prepare.
type (
	// Files reads the media files of posts.
	Files = prepare.Files
	// Renditions converts images that a platform does not accept.
	Renditions = prepare.Renditions
	// Thumbnails extracts pictures from videos.
	Thumbnails = prepare.Thumbnails
	// Conversions converts videos that a platform does not accept.
	Conversions = prepare.Conversions
)

// Records configures the archive of records.
type Records = records.Config

// ErrNotRecorded is returned if a post has no record; see package internal/records.
var ErrNotRecorded = records.ErrNotRecorded

// Metrics measures how well the delivery keeps its guarantees.
type Metrics = stats.Metrics

// NewMetrics creates the metrics, and registers them unless registerer is nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics { return stats.New(registerer) }

// Plans finds the owners of namespaces, and counts the usage that a plan or a platform limits.
type Plans struct {
	// Owner returns the team that owns a namespace, or nil if there is none.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Quota stores the usage.
	Quota *quota.UsageStore
}

// Options configures the reconciler. Client, APIReader, Platforms, Tokens, Files, Renditions, Owned, Clock and NewID
// are required.
type Options struct {
	// Client reads from the cache, which needs the index kubeclient.MediaIndex, and writes to the API server.
	Client client.Client
	// APIReader reads from the API server without the cache.
	APIReader client.Reader
	// Platforms holds the publishers of this process.
	Platforms platforms.Registry
	// Tokens returns access tokens of connections.
	Tokens Tokens
	// Apps holds the ids of the installation's apps. App-wide rate limits are accepted only for these; if nil, for none.
	Apps credentials.Apps
	// Files reads the media files of posts.
	Files Files
	// Renditions converts images that a platform does not accept.
	Renditions Renditions
	// Thumbnails extracts pictures from videos. It is nil without ffmpeg; posts are then published without thumbnails.
	Thumbnails Thumbnails
	// Conversions converts videos. If nil, videos cannot be converted, for the reason in Unconverted, which is phrased to
	// end a sentence.
	Conversions Conversions
	Unconverted string
	// TeamMedia returns the media settings of the team that owns a namespace. If nil, the defaults apply.
	TeamMedia func(ctx context.Context, namespace string) (v1alpha1.TeamMedia, error)
	// Owned reports whether a team owns a namespace. Nothing is sent from other namespaces.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Suspension reports whether the team of a namespace is suspended, and its recent suspensions. If nil, no team is
	// suspended. SuspendAll suspends all teams; it may be nil.
	Suspension func(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error)
	SuspendAll *installation.Suspension
	// Clock returns the time. Jumps notifies of clock changes that make its timers wrong. If nil, the clock never jumps.
	Clock clock.WithTicker
	Jumps *apiclock.Jumps
	// NewID returns a unique id for an attempt.
	NewID func() string
	// Records stores outcomes beyond a post's deletion. If nil, a deleted and re-created post is published again.
	Records *Records
	// Rollback returns the cluster's rollback state, and may block. If nil, the cluster is never rolled back.
	Rollback func(ctx context.Context) (rollback.Status, error)
	// Shard is the shard whose posts are delivered: Client and the manager's cache must contain only those. If nil, there
	// is only one shard.
	Shard *Shard
	// Team returns the team that owns a namespace, or nil if there is none. AssignedBefore are the Teams as the API server
	// had them before the cache of posts was filled, without those that had unlabelled posts after that: the cache may lack
	// posts of other teams at first. Both are required with Shard.
	Team           func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	AssignedBefore []v1alpha1.Team
	// Plans counts the usage that the teams' plans limit. If nil, there is no limit.
	Plans *Plans
	// Events records events for the post's owner. If nil, none are recorded.
	Events events.EventRecorder
	// Metrics holds the metrics of the reconciler. If nil, none are exported.
	Metrics *Metrics
	// Unlisted counts platform errors that are missing from the error tables. If nil, none are counted.
	Unlisted *unlisted.Counter
	// Stopping is closed when this process stops or gives up the shard: another process may then report the gauges. It may
	// be nil.
	Stopping <-chan struct{}
	// Tracer traces reconciliations. If nil, none are traced.
	Tracer *tracing.Tracer
	// MaxConcurrentReconciles is the number of posts that are reconciled concurrently (default 256).
	MaxConcurrentReconciles int
	// Groups stores the groups of posts that are claimed before they are due; see Groups. If nil, none are.
	Groups *Groups
	// CrowdSize is the number of posts that must be due at the same time to be claimed before that time (default 50).
	// Fewer posts are claimed within half a second after it if the API server stores 100 claims per second.
	CrowdSize int
	// MaxArmedCalls limits the concurrent calls of posts that were claimed before they were due (default 1,024). Each
	// takes a connection and about 60 KB.
	MaxArmedCalls int
	// MaxUploads is the number of targets with files that are prepared concurrently (default 32).
	MaxUploads int
	// Holder identifies this process if all managers prepare files, although only one of them delivers posts. If empty,
	// only the manager that delivers posts prepares files.
	Holder string
	// Managers is the number of managers that share uploads, for the forecast of late ones (default 1).
	Managers int
	// HoldFor is the time for which a process holds the preparation of a target without extending it (default 1 min).
	// After that, others take over the uploads of a process that died.
	HoldFor time.Duration
	// PrepareAhead is the lead time for the preparation of a scheduled post with files (default 30 min). It includes
	// uploads that are not visible. Large files start earlier; content that a platform keeps only briefly starts later.
	PrepareAhead time.Duration
	// StartingDeadline limits how late a scheduled post may be and how long temporary refusals are retried (default 1 h).
	StartingDeadline time.Duration
	// LongestDelay is the maximum delay of a post whose platform requested a wait (default 6 h, at least
	// StartingDeadline).
	LongestDelay time.Duration
	// SendWindow is the time after a claim within which its call must start (default 5 s).
	SendWindow time.Duration
	// ClockMargin is the largest expected difference between two clocks (default 2 s).
	ClockMargin time.Duration
	// RecordFor limits how long a reconciliation retries to record the result of its call (default DefaultRecordFor).
	// Later reconciliations continue after that.
	RecordFor time.Duration
	// Namespaces are the namespaces that this installation serves.
	Namespaces configv1alpha1.Namespaces
	// Failpoint is called at named points of the delivery, for tests that kill the process there. If nil, nothing happens.
	Failpoint func(point string)
}

// Groups describes the Leases that store groups of posts.
type Groups struct {
	// Namespace is the manager's namespace, and Prefix is the release's name.
	Namespace, Prefix string
	// Owners returns the owners of the Leases, which are removed with them.
	Owners func(ctx context.Context) []metav1.OwnerReference
}

// DefaultRecordFor is Options.RecordFor's default. The termination grace period must exceed this plus one call.
const DefaultRecordFor = time.Minute

func (o *Options) setDefaults() {
	o.StartingDeadline = cmp.Or(o.StartingDeadline, time.Hour)
	o.LongestDelay = max(cmp.Or(o.LongestDelay, 6*time.Hour), o.StartingDeadline)
	o.PrepareAhead = cmp.Or(o.PrepareAhead, 30*time.Minute)
	o.HoldFor = cmp.Or(o.HoldFor, time.Minute)
	o.SendWindow = cmp.Or(o.SendWindow, 5*time.Second)
	o.ClockMargin = cmp.Or(o.ClockMargin, 2*time.Second)
	o.RecordFor = cmp.Or(o.RecordFor, DefaultRecordFor)
	o.MaxConcurrentReconciles = cmp.Or(o.MaxConcurrentReconciles, 256)
	o.CrowdSize = cmp.Or(o.CrowdSize, 50)
	o.MaxArmedCalls = cmp.Or(o.MaxArmedCalls, 1024)
	o.MaxUploads = cmp.Or(o.MaxUploads, 32)
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
}

func (o *Options) settings() delivery.Settings {
	return delivery.Settings{
		StartingDeadline: o.StartingDeadline, LongestDelay: o.LongestDelay, SendWindow: o.SendWindow, ClockMargin: o.ClockMargin, PrepareAhead: o.PrepareAhead,
		HoldFor: o.HoldFor,
	}
}
