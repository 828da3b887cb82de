// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery decides what to do next about a post. Decide maps recorded facts and the time to actions, which the
// reconciler carries out. Package explore tests all orders of events. The functions in record.go record events in the
// post, and Describe derives the fields that users see. The package is pure: it modifies only the status of the post
// that is passed in, performs no I/O and does not read a clock.
package delivery

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Settings are the time limits of delivery.
type Settings struct {
	// StartingDeadline is the maximum lateness of a scheduled post, and the time for which a temporary refusal is retried.
	StartingDeadline time.Duration
	// LongestDelay limits how late a post may be. Until then, the starting deadline counts from the end of an announced
	// pause.
	LongestDelay time.Duration
	// SendWindow is the maximum time between a claim and the start of its call.
	SendWindow time.Duration
	// ClockMargin is the largest difference between two clocks.
	ClockMargin time.Duration
	// PrepareAhead is the lead time for preparing scheduled posts with files.
	PrepareAhead time.Duration
	// HoldFor is the time for which a process holds a preparation. The process can extend the hold, and does so after half
	// that time.
	HoldFor time.Duration
}

// Facts are the input of a decision.
type Facts struct {
	// View is a view of the post as read. Decide records its decisions about targets in the post's status.
	posting.View
	// Now is the decision time.
	Now time.Time
	// Settings are this installation's settings.
	Settings Settings
	// Platforms are the platforms that this process can publish to.
	Platforms platforms.Registry
	// Connections and Media are the referenced objects by name. Missing objects have no entry.
	Connections map[string]*v1alpha1.Connection
	Media       map[string]*v1alpha1.Media
	// BlockedUntil returns the end of a connection's rate limit, or zero if it has none.
	BlockedUntil func(conn *v1alpha1.Connection) time.Time
	// Unowned means that no team owns the post's namespace. Posts in such a namespace are not sent.
	Unowned bool
	// StartedAt is the time when this process started to reconcile posts, or zero if that does not matter.
	StartedAt time.Time
	// Earlier is the result of looking up an earlier post with the same name.
	Earlier Earlier
	// Original is the failed post in spec.retryOf. If it is nil, it was not read for this decision.
	Original *Original
	// Rollback describes a detected or suspected cluster rollback.
	Rollback Rollback
	// NamespaceTerminating is true if the post's namespace is being deleted, and with it the evidence of the last call.
	// It is read only for posts that are being deleted.
	NamespaceTerminating bool
	// Suspended is true while the post's team is suspended. Suspensions are its recent suspensions, including the
	// current one once it is recorded. They shift deadlines.
	Suspended   bool
	Suspensions []v1alpha1.Suspension
	// MayProbe reports whether the post may call the platform for a connection that BlockedUntil no longer blocks. After
	// an app's limit ends, a single post probes the platform. If MayProbe is nil, every post may call.
	MayProbe func(conn *v1alpha1.Connection) bool
	// NeedsProbe reports whether a call for a connection would probe the platform. If it is nil, no call would.
	NeedsProbe func(conn *v1alpha1.Connection) bool
	// Invalid returns the post's validation errors.
	Invalid func() field.ErrorList
	// Results holds the results that this process has not recorded yet.
	Results []Result
	// CredentialsProblem returns this reconciliation's error from reading a connection's credentials, or nil.
	CredentialsProblem func(connection string) error
	// Preparation returns a target's preparation.
	Preparation func(target int) Preparation
	// Holder identifies this process if several processes prepare files. It is empty if only the process that delivers
	// posts does.
	Holder string
	// Crowded is true if enough posts are due at the post's time for this process to claim them before that time, and the
	// post is small enough to be held in memory until then.
	Crowded bool
	// Group returns what this process knows about the group of an armed attempt. If it is nil, every group may be open.
	Group func(group string) GroupState
	// SlotsRequested is true once this reconciliation has asked for preparation slots. A post whose preparation got no
	// slot is requeued when one becomes free.
	SlotsRequested bool
}

// Result is the result of an attempt's call.
type Result struct {
	// Target is the index in spec.targets.
	Target int
	// Attempt is the attempt's ID.
	Attempt string
	platforms.Result
}

// PreparationState is the progress of a target's preparation.
type PreparationState int

// The states of a preparation.
const (
	// PreparationNotNeeded: the target does not need preparation.
	PreparationNotNeeded PreparationState = iota
	// PreparationMissing: the preparation has not started.
	PreparationMissing
	// PreparationRunning: the preparation is in progress.
	PreparationRunning
	// PreparationReady: the preparation is complete, and publishing can follow.
	PreparationReady
	// PreparationFailed: the preparation ended with an error.
	PreparationFailed
	// PreparationVisible: the content has already been published, by an earlier call that was assumed to be lost.
	PreparationVisible
)

// Preparation is the state of a target's preparation in this process, such as an upload or a hidden container.
type Preparation struct {
	State PreparationState
	// Hash identifies the prepared content.
	Hash string
	// BegunAt and EndedAt are the start and end times.
	BegunAt, EndedAt time.Time
	// Ahead is true if the preparation started before the scheduled time.
	Ahead bool
	// Failures is the number of consecutive failures before this one.
	Failures int
	// Checkpoint is the platform's reference to the prepared content. Secret is true if its upload session is in a Secret.
	Checkpoint string
	Secret     bool
	// SecretHash identifies the content of the Secret. It is empty if there is no Secret.
	SecretHash string
	// Converting is true while a video is being converted. Converted is the progress in percent.
	Converting bool
	Converted  int
	// Err is the reason why the preparation failed.
	Err *platforms.Error
	// TTL is the time for which the platform keeps the prepared content.
	TTL time.Duration
}

// recordedSecret returns the values of Secret and SecretHash to record. A running preparation has no hash until it has
// read the Secret; recordedSecret then keeps the known hash, and with it the session of an earlier call.
func (p *Preparation) recordedSecret(known *v1alpha1.Prepared) (secret bool, hash string) {
	if p.SecretHash == "" && known != nil && known.SecretHash != "" && known.ContentHash == p.Hash && known.Checkpoint == p.Checkpoint {
		return true, known.SecretHash
	}
	return p.Secret, p.SecretHash
}

// Action is a delivery step. Actions are executed in order, and the reconciliation ends with the first action that
// stores a change, which requeues the post.
//
// sumtype:decl
type Action interface{ isAction() }

type (
	// Record stores Facts.Results.
	Record struct{}
	// Resolve records the resolutions in the annotation.
	Resolve struct{ Value string }
	// Lookup requests the outcome of the targets' open attempts from the platforms.
	Lookup struct{ Targets []int }
	// Prepare starts preparing targets. Decide is called again afterwards. Those in Hold start after this process has
	// stored that it holds them, with RecordHolds; it holds no more of them than it has slots for.
	Prepare struct {
		Targets, Hold []int
		Ahead         bool
	}
	// StopPreparing stops and drops the targets' preparations in this process. Nothing is removed from the platform, since
	// another process may be continuing the same upload.
	StopPreparing struct{ Targets []int }
	// ReportPreparation reports a failed preparation as an event and to the connection, and drops it unless it was early.
	ReportPreparation struct {
		Target int
		Ahead  bool
	}
	// FindEarlier requests the outcome of an earlier post with the same name from the archive. Decide is called again
	// afterwards.
	FindEarlier struct{}
	// ReadOriginal reads the failed post that this post retries. Decide is called again afterwards.
	ReadOriginal struct{}
	// ReserveRetry reserves targets of the original for this post, at the resourceVersion that was read. Decide is called
	// again afterwards.
	ReserveRetry struct{ Targets []int }
	// Claim claims targets in one write, sends them and records the results.
	Claim struct{ Targets []int }
	// Arm claims targets before they are due, in one write and in a group that is opened when they are due. If no group is
	// available, the post is claimed when it is due.
	Arm struct{ Targets []int }
	// TakeBack closes groups that another process has armed, unless they may be open. Decide is called again afterwards.
	TakeBack struct{ Groups []string }
	// Write stores a changed status and then emits the event.
	Write struct{ Event Event }
	// Release removes the finalizer from a post being deleted.
	Release struct{}
	// Wait requeues the post at Until. If that is zero, only a change requeues it.
	Wait struct {
		Until time.Time
		// ForInputs requeues the post when one of its connections or files changes.
		ForInputs bool
		// InTurn lets due posts of other teams go first.
		InTurn bool
	}
)

func (Record) isAction()            {}
func (Resolve) isAction()           {}
func (Lookup) isAction()            {}
func (Prepare) isAction()           {}
func (StopPreparing) isAction()     {}
func (ReportPreparation) isAction() {}
func (FindEarlier) isAction()       {}
func (ReadOriginal) isAction()      {}
func (ReserveRetry) isAction()      {}
func (Claim) isAction()             {}
func (Arm) isAction()               {}
func (TakeBack) isAction()          {}
func (Write) isAction()             {}
func (Release) isAction()           {}
func (Wait) isAction()              {}

// Event is emitted on a post after its status has been written. The zero Event emits nothing. A target that a decision
// fails has its own event, which the controller emits.
type Event struct {
	// Warning is true if the user must act.
	Warning bool
	// Reason is one of the reasons in v1alpha1.
	Reason string
	// Message is the message of the event. If it is empty, the message of the Ready condition is used.
	Message string
}

// Timing returns the time limits for the post on a platform. It returns false if this process cannot publish there.
func (f *Facts) Timing(name v1alpha1.Platform) (attempt.Timing, bool) {
	timing := attempt.Timing{SendWindow: f.Settings.SendWindow, ClockMargin: f.Settings.ClockMargin, LookupTimeout: f.Settings.StartingDeadline}
	p, ok := f.Platforms[name].(platforms.Publisher)
	if !ok {
		return timing, false
	}
	capabilities := p.Capabilities()
	timing.CallTimeout = capabilities.CallTimeout
	timing.Lag = capabilities.ListingLag
	timing.ConfirmAfter = cmp.Or(capabilities.ConfirmAfter, capabilities.ListingLag)
	timing.Authoritative = capabilities.ProvesAbsence(f.Post.Spec.Category)
	if timing.Idempotent = capabilities.Idempotent; timing.Idempotent {
		timing.Lag, timing.ConfirmAfter = 0, 0
	}
	return timing, true
}

func (f *Facts) connection(target int) *v1alpha1.Connection {
	return f.Connections[f.Post.Spec.Targets[target].ConnectionRef.Name]
}

func (f *Facts) blockedUntil(target int) time.Time {
	if conn := f.connection(target); conn != nil {
		return f.BlockedUntil(conn)
	}
	return time.Time{}
}

// spread returns a fraction of the duration that is constant for a post, to stagger several posts.
func (f *Facts) spread(over time.Duration) time.Duration { return pacing.Spread(over, f.Post.UID) }
