// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery decides a post's next actions. Decide maps recorded facts and the time to actions, which the reconciler executes.
// Package explore tests all event orders. The functions in record.go record events in the post, and Describe derives the user-visible
// fields. The package is pure: it changes only the given post's status, does no I/O and reads no clock.
package delivery

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

// Settings holds the delivery time limits.
type Settings struct {
	// StartingDeadline is the maximum delay of a scheduled post, and the maximum retry time after a temporary refusal.
	StartingDeadline time.Duration
	// LongestDelay is the maximum delay of a post whose platform announces pauses. Within it, the starting deadline counts from the end of
	// a pause.
	LongestDelay time.Duration
	// SendWindow is the maximum time between a claim and the start of its call.
	SendWindow time.Duration
	// ClockMargin is the maximum difference between two clocks.
	ClockMargin time.Duration
	// PrepareAhead is the preparation lead time of scheduled posts with files.
	PrepareAhead time.Duration
}

// Facts is the input of a decision.
type Facts struct {
	// Post is the post as read. Decide records target decisions in its status.
	Post *v1alpha1.Post
	// Now is the decision time.
	Now time.Time
	// Settings holds this installation's settings.
	Settings Settings
	// Platforms holds this process's platforms.
	Platforms platforms.Registry
	// Connections and Media hold the referenced objects by name. Missing objects have no entry.
	Connections map[string]*v1alpha1.Connection
	Media       map[string]*v1alpha1.Media
	// BlockedUntil returns the end of a connection's rate limit, or zero without one.
	BlockedUntil func(conn *v1alpha1.Connection) time.Time
	// Unowned means that no team owns the post's namespace. Its posts are not sent.
	Unowned bool
	// StartedAt is when this process started to reconcile posts; zero if irrelevant.
	StartedAt time.Time
	// Earlier is the lookup of an earlier post with the same name.
	Earlier Earlier
	// Rollback describes a detected or suspected cluster rollback.
	Rollback Rollback
	// NamespaceTerminating is true if the post's namespace is being deleted, together with the evidence of the last call. It is read only
	// for posts being deleted.
	NamespaceTerminating bool
	// Suspended is true while the post's team is suspended. Suspensions holds its recent suspensions, including the recorded current one.
	// They shift deadlines.
	Suspended   bool
	Suspensions []v1alpha1.Suspension
	// MayProbe reports whether the post may call the platform for a connection without a current limit in BlockedUntil. After an app's
	// limit ends, a single post probes the platform. If MayProbe is nil, every post may call.
	MayProbe func(conn *v1alpha1.Connection) bool
	// Invalid returns the post's validation errors.
	Invalid func() field.ErrorList
	// Results holds this process's unrecorded results.
	Results []Result
	// CredentialsProblem returns the error of reading a connection's credentials in this reconciliation, or nil if they were read or not
	// needed.
	CredentialsProblem func(connection string) error
	// Preparation returns a target's preparation.
	Preparation func(target int) Preparation
	// SlotsRequested is true after this reconciliation has requested preparation slots. A preparation without a slot is requeued when one
	// becomes free.
	SlotsRequested bool
}

// Result is the outcome of an attempt's call.
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
	// PreparationNotNeeded: the target needs no preparation.
	PreparationNotNeeded PreparationState = iota
	// PreparationMissing: the preparation has not started.
	PreparationMissing
	// PreparationRunning: the preparation is in progress.
	PreparationRunning
	// PreparationReady: the preparation is complete, and the publishing call can follow.
	PreparationReady
	// PreparationFailed: the preparation ended with an error.
	PreparationFailed
	// PreparationVisible: an earlier call, assumed lost, has already published the content.
	PreparationVisible
)

// Preparation is this process's view of a target's preparation, such as an upload or a hidden container.
type Preparation struct {
	State PreparationState
	// Hash identifies the prepared content.
	Hash string
	// BegunAt and EndedAt are the start and end times.
	BegunAt, EndedAt time.Time
	// Ahead is true if the preparation started before the scheduled time.
	Ahead bool
	// Failures counts the preceding consecutive failures.
	Failures int
	// Checkpoint is the platform's reference to the prepared content. Secret is true if a Secret holds its upload session.
	Checkpoint string
	Secret     bool
	// SecretHash identifies the Secret's contents. It is empty without a Secret.
	SecretHash string
	// Converting is true during a video conversion. Converted is its progress in percent.
	Converting bool
	Converted  int
	// Err is a failed preparation's error.
	Err *platforms.Error
	// TTL is the platform's retention time for the prepared content.
	TTL time.Duration
}

// recordedSecret returns the Secret and SecretHash values to record. A running preparation has no hash until it has read the Secret;
// recordedSecret then keeps the known hash, which preserves an earlier call's session.
func (p *Preparation) recordedSecret(known *v1alpha1.Prepared) (secret bool, hash string) {
	if p.SecretHash == "" && known != nil && known.SecretHash != "" && known.ContentHash == p.Hash && known.Checkpoint == p.Checkpoint {
		return true, known.SecretHash
	}
	return p.Secret, p.SecretHash
}

// Action is a delivery step. Actions are executed in order, and the reconciliation ends with the first action that stores a change, which
// requeues the post.
//
// sumtype:decl
type Action interface{ isAction() }

type (
	// Record stores Facts.Results.
	Record struct{}
	// Resolve records the annotation's resolutions.
	Resolve struct{ Value string }
	// Lookup queries the platform for the outcomes of the targets' open attempts.
	Lookup struct{ Targets []int }
	// Prepare starts target preparations. Decide is called again afterwards.
	Prepare struct {
		Targets []int
		Ahead   bool
	}
	// ReportPreparation reports a failed preparation as an event and to the connection. It drops the preparation unless it was an early
	// one.
	ReportPreparation struct {
		Target int
		Ahead  bool
	}
	// FindEarlier queries the archive for the outcome of an earlier post with the same name. Decide is called again afterwards.
	FindEarlier struct{}
	// Claim claims targets in one write, sends them and records the results.
	Claim struct{ Targets []int }
	// Write stores a changed status and then emits the event.
	Write struct{ Event Event }
	// Release removes the finalizer from a post being deleted.
	Release struct{}
	// Wait requeues the post at Until. If Until is zero, only a change requeues it.
	Wait struct {
		Until time.Time
		// ForInputs requeues the post when one of its connections or files changes.
		ForInputs bool
		// InTurn yields to due posts of other teams.
		InTurn bool
	}
)

func (Record) isAction()            {}
func (Resolve) isAction()           {}
func (Lookup) isAction()            {}
func (Prepare) isAction()           {}
func (ReportPreparation) isAction() {}
func (FindEarlier) isAction()       {}
func (Claim) isAction()             {}
func (Write) isAction()             {}
func (Release) isAction()           {}
func (Wait) isAction()              {}

// Event is emitted on a post after its status is written. The zero Event emits nothing. A target failed by a decision has its own event,
// which the controller emits.
type Event struct {
	// Warning is true if the user must act.
	Warning bool
	// Reason is a reason defined in v1alpha1.
	Reason string
	// Message is the event message. If it is empty, the message of the Ready condition is used.
	Message string
}

// Timing returns the protocol's time limits for the post on a platform. It returns false if this process cannot publish there.
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
	return timing, true
}

// connection returns a target's connection, or nil if it does not exist.
func (f *Facts) connection(target int) *v1alpha1.Connection {
	return f.Connections[f.Post.Spec.Targets[target].ConnectionRef.Name]
}

// blockedUntil returns the end of the rate limit of a target's platform, or zero without one.
func (f *Facts) blockedUntil(target int) time.Time {
	if conn := f.connection(target); conn != nil {
		return f.BlockedUntil(conn)
	}
	return time.Time{}
}

// spread returns a fraction of the duration that is constant for each post. It staggers events that would otherwise
// coincide with events of other posts.
func (f *Facts) spread(over time.Duration) time.Duration { return pacing.Spread(over, f.Post.UID) }
