// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery decides the next actions for a post. Decide takes recorded facts and the time, and returns actions.
// The reconciler executes them, and package explore tests every possible order of events. The functions of record.go
// record events in the post, and Describe derives the fields for readers. The package is pure: it changes only the
// status of the given post, does no I/O and reads no clock.
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

// Settings are the time limits of delivery.
type Settings struct {
	// StartingDeadline is the maximum lateness of a scheduled post, and the maximum time for retries of a temporary
	// refusal.
	StartingDeadline time.Duration
	// LongestDelay is the maximum lateness of a post whose platform announces pauses. Within it, the starting deadline
	// counts from the end of a pause.
	LongestDelay time.Duration
	// SendWindow is the time after a claim within which its call must start.
	SendWindow time.Duration
	// ClockMargin is the maximum difference between two clocks.
	ClockMargin time.Duration
	// PrepareAhead is the lead time for the preparation of a scheduled post with files.
	PrepareAhead time.Duration
}

// Facts are the input of a decision.
type Facts struct {
	// Post is the post as it was read. Decide records its decisions about targets in the status.
	Post *v1alpha1.Post
	// Now is the time of the decision.
	Now time.Time
	// Settings are the settings of this installation.
	Settings Settings
	// Platforms are the platforms of this process.
	Platforms platforms.Registry
	// Connections and Media hold the objects that the post refers to, by name. Missing objects have no entry.
	Connections map[string]*v1alpha1.Connection
	Media       map[string]*v1alpha1.Media
	// BlockedUntil returns when the platform accepts calls for a connection again, or zero if it accepts them now.
	BlockedUntil func(conn *v1alpha1.Connection) time.Time
	// Unowned is set if no team owns the post's namespace. Nothing is sent there.
	Unowned bool
	// StartedAt is when this process started to reconcile posts, or zero if it does not matter.
	StartedAt time.Time
	// Earlier is the lookup of an earlier post with the same name.
	Earlier Earlier
	// Rollback describes a detected or suspected rollback of the cluster.
	Rollback Rollback
	// NamespaceTerminating is set if the post's namespace is being deleted. It is read only for a post that is being
	// deleted. Deleting the namespace removes the evidence of the last call.
	NamespaceTerminating bool
	// Suspended is set while the post's team is suspended. Suspensions are its recent suspensions, including the
	// current one once it is recorded. They shift deadlines.
	Suspended   bool
	Suspensions []v1alpha1.Suspension
	// MayProbe reports whether the post may call the platform for a connection without a current limit in
	// BlockedUntil. After the limit of an app ends, one post probes whether the platform accepts calls again. If
	// MayProbe is nil, every post may call.
	MayProbe func(conn *v1alpha1.Connection) bool
	// Invalid returns the rules that the post breaks.
	Invalid func() field.ErrorList
	// Results are results that this process has but could not record.
	Results []Result
	// CredentialsProblem returns the error of reading a connection's credentials in this reconciliation. It returns
	// nil if they could be read, or were not read.
	CredentialsProblem func(connection string) error
	// Preparation returns the preparation of a target.
	Preparation func(target int) Preparation
	// SlotsRequested is set after this reconciliation has requested slots for the preparations. A preparation without
	// a slot is requeued when one becomes free.
	SlotsRequested bool
}

// Result is the outcome of one attempt's call.
type Result struct {
	// Target is the index in spec.targets.
	Target int
	// Attempt is the id of the attempt.
	Attempt string
	platforms.Result
}

// PreparationState is the progress of a target's preparation.
type PreparationState int

// The states of a preparation.
const (
	// PreparationNotNeeded: the target needs no preparation.
	PreparationNotNeeded PreparationState = iota
	// PreparationMissing: it has not started.
	PreparationMissing
	// PreparationRunning: it is in progress.
	PreparationRunning
	// PreparationReady: it is complete, and the visible call can follow.
	PreparationReady
	// PreparationFailed: it ended with an error.
	PreparationFailed
	// PreparationVisible: the content is already published, by an earlier call that was assumed lost.
	PreparationVisible
)

// Preparation is this process's view of the preparation of a target, such as an upload or a hidden container.
type Preparation struct {
	State PreparationState
	// Hash identifies the prepared content.
	Hash string
	// BegunAt and EndedAt are its start and end times.
	BegunAt, EndedAt time.Time
	// Ahead is set if it started before the post's time.
	Ahead bool
	// Failures counts the consecutive failures before this one.
	Failures int
	// Checkpoint is the platform's reference to the prepared content. Secret is set if a Secret holds its upload
	// session.
	Checkpoint string
	Secret     bool
	// SecretHash identifies the contents of that Secret. It is empty without a Secret.
	SecretHash string
	// Converting is set during the conversion of a video. Converted is its progress in percent.
	Converting bool
	Converted  int
	// Err is the error of a failed preparation.
	Err *platforms.Error
	// TTL is how long the platform keeps the prepared content.
	TTL time.Duration
}

// recordedSecret returns the values of Secret and SecretHash to record. A running preparation that has not read the
// Secret yet, or cannot read it, has no hash; recordedSecret then keeps the known hash. Otherwise the session of an
// earlier call would be lost.
func (p *Preparation) recordedSecret(known *v1alpha1.Prepared) (secret bool, hash string) {
	if p.SecretHash == "" && known != nil && known.SecretHash != "" && known.ContentHash == p.Hash && known.Checkpoint == p.Checkpoint {
		return true, known.SecretHash
	}
	return p.Secret, p.SecretHash
}

// Action is a step of the delivery. Actions are executed in order. The reconciliation ends with the first action that
// stores a change, because the change requeues the post.
//
//sumtype:decl
type Action interface{ isAction() }

type (
	// Record stores the results in Facts.Results.
	Record struct{}
	// Resolve records the resolution in the annotation.
	Resolve struct{ Value string }
	// Lookup queries the platform for the outcome of the targets' open attempts.
	Lookup struct{ Targets []int }
	// Prepare starts the preparations of targets. Decide is called again afterwards.
	Prepare struct {
		Targets []int
		Ahead   bool
	}
	// ReportPreparation reports a failed preparation as an event and to the connection. It drops the preparation
	// unless it was made ahead of the post's time.
	ReportPreparation struct {
		Target int
		Ahead  bool
	}
	// FindEarlier queries the archive for the outcome of an earlier post with the same name. Decide is called again
	// afterwards.
	FindEarlier struct{}
	// Claim claims targets in one write, sends them and records the results.
	Claim struct{ Targets []int }
	// Write stores the status if it has changed, then emits the event.
	Write struct{ Event Event }
	// Release removes the finalizer from a post that is being deleted.
	Release struct{}
	// Wait requeues the post at Until. If Until is zero, only a change requeues it.
	Wait struct {
		Until time.Time
		// ForInputs requeues the post when one of its connections or files changes.
		ForInputs bool
		// InTurn lets due posts of other teams run in between.
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

// Event is emitted to the owner of a post after its status is written. The zero Event emits nothing. A target that
// fails by a decision has its own event, which the controller emits.
type Event struct {
	// Warning is set if a person must act.
	Warning bool
	// Reason is one of the reasons in v1alpha1.
	Reason string
	// Message is the text. If it is empty, the event has the message of the Ready condition.
	Message string
}

// Timing returns the protocol's time limits for the post on a platform. It returns false if this process cannot
// publish there.
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

// connection returns the connection of a target, or nil if it does not exist.
func (f *Facts) connection(target int) *v1alpha1.Connection {
	return f.Connections[f.Post.Spec.Targets[target].ConnectionRef.Name]
}

// blockedUntil returns when the platform of a target accepts calls again, or zero if it accepts them now.
func (f *Facts) blockedUntil(target int) time.Time {
	if conn := f.connection(target); conn != nil {
		return f.BlockedUntil(conn)
	}
	return time.Time{}
}

// spread returns a fraction of the duration that is constant for each post. It staggers events that would otherwise
// coincide with events of other posts.
func (f *Facts) spread(over time.Duration) time.Duration { return pacing.Spread(over, f.Post.UID) }
