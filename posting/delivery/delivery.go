// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery decides what comes next for a post. Decide takes recorded
// facts and the time, and returns actions; the reconciler carries them out, and
// package explore walks through every order in which that can happen. What
// happened is entered into the post by the functions of enter.go, and Describe
// derives what people read. The package is pure: it changes the status of the
// post that it is given, does no I/O and reads no clock.
package delivery

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/jitter"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

// Settings are the times that delivery works with.
type Settings struct {
	// StartingDeadline is how late a scheduled post may still go out, and how
	// long a temporary refusal is tried again.
	StartingDeadline time.Duration
	// LongestDelay is how late a post may still go out whose platform announced
	// pauses: the starting deadline counts from the end of a pause, within this.
	LongestDelay time.Duration
	// SendWindow is how long after its claim a call may be begun.
	SendWindow time.Duration
	// ClockMargin is how far two clocks may differ.
	ClockMargin time.Duration
	// PrepareAhead is how long before its time a scheduled post with files is
	// prepared.
	PrepareAhead time.Duration
}

// Facts are what a decision is made from.
type Facts struct {
	// Post is the post as it was read. Decide enters into its status what it
	// decides about targets.
	Post *v1alpha1.Post
	// Now is the time of the decision.
	Now time.Time
	// Settings are those of this installation.
	Settings Settings
	// Platforms are the platforms of this process.
	Platforms platforms.Registry
	// Connections and Media hold what the post refers to, by name. What does
	// not exist is absent.
	Connections map[string]*v1alpha1.Connection
	Media       map[string]*v1alpha1.Media
	// BlockedUntil returns when the platform takes calls for a connection again;
	// zero if it takes them now.
	BlockedUntil func(conn *v1alpha1.Connection) time.Time
	// Unowned is set if no team owns the post's namespace: nothing is sent there.
	Unowned bool
	// StartedAt is when this process began to work on posts; zero if that does not matter.
	StartedAt time.Time
	// Earlier is what is known of an earlier post of the name.
	Earlier Earlier
	// Rollback is what is known of the cluster having been put back to an earlier state.
	Rollback Rollback
	// NamespaceTerminating is set if the post's namespace is being deleted, and was asked for
	// because the post is. What could tell of its last call goes with it.
	NamespaceTerminating bool
	// Suspended is set while nothing of the post's team is published, and Suspensions are
	// the recent times in which that was so; the present one is among them once it is
	// recorded. Deadlines move by them.
	Suspended   bool
	Suspensions []v1alpha1.Suspension
	// MayProbe reports whether the post may call the platform for a connection of which
	// BlockedUntil says nothing. When the limit of an app has ended, one post may, and
	// finds out whether it is over; nil lets every post.
	MayProbe func(conn *v1alpha1.Connection) bool
	// Invalid returns the rules that the post breaks.
	Invalid func() field.ErrorList
	// Results are the results that this process knows and could not record.
	Results []Result
	// CredentialsProblem returns why the credentials of a connection cannot be read,
	// as this pass has learned; nil if they can, or were not read.
	CredentialsProblem func(connection string) error
	// Preparation returns what precedes the visible call of a target.
	Preparation func(target int) Preparation
	// SlotsRequested is set once this pass has asked for places for the
	// preparations: what has none then is woken when a place is free.
	SlotsRequested bool
}

// Result is what came of the call of one attempt.
type Result struct {
	// Target is the index in spec.targets.
	Target int
	// Attempt is the id of the attempt.
	Attempt string
	platforms.Result
}

// PreparationState is how far the preparation of a target is.
type PreparationState int

// The states of a preparation.
const (
	// PreparationNotNeeded: nothing precedes the visible call.
	PreparationNotNeeded PreparationState = iota
	// PreparationMissing: it has not begun.
	PreparationMissing
	// PreparationRunning: it is under way.
	PreparationRunning
	// PreparationReady: nothing but the call is left.
	PreparationReady
	// PreparationFailed: it ended with an error.
	PreparationFailed
	// PreparationVisible: it has become visible already, by a call that was taken
	// for lost.
	PreparationVisible
)

// Preparation is what the process knows of what precedes the visible call of a
// target: an upload, or a container that is not visible.
type Preparation struct {
	State PreparationState
	// Hash identifies the content that it is made for.
	Hash string
	// BegunAt and EndedAt are when it began and ended.
	BegunAt, EndedAt time.Time
	// Ahead is set if it began before the post's time.
	Ahead bool
	// Failures counts the failures in a row before this one.
	Failures int
	// Checkpoint names what is there so far on the platform, and Secret tells
	// that what carries authority over it is kept in a Secret.
	Checkpoint string
	Secret     bool
	// SecretHash identifies what is kept there; empty without a Secret.
	SecretHash string
	// Converting says that a video is being converted, and Converted how much of that is
	// done, in percent.
	Converting bool
	Converted  int
	// Err is why it failed.
	Err *platforms.Error
	// TTL is how long the platform keeps what is prepared.
	TTL time.Duration
}

// recordedSecret returns what is recorded of what the Secret keeps. A preparation that
// goes on, and has not read the Secret yet or cannot, does not know it: what is known
// stays, or a session that a call was made with would be forgotten.
func (p *Preparation) recordedSecret(known *v1alpha1.Prepared) (secret bool, hash string) {
	if p.SecretHash == "" && known != nil && known.SecretHash != "" && known.ContentHash == p.Hash && known.Checkpoint == p.Checkpoint {
		return true, known.SecretHash
	}
	return p.Secret, p.SecretHash
}

// Action is one thing to do next. Actions are carried out in their order; the
// pass ends with the first one that stores something, for the change wakes the
// post again.
//
//sumtype:decl
type Action interface{ isAction() }

type (
	// Record stores the results in Facts.Results.
	Record struct{}
	// Resolve enters what a person found out, as the annotation says it.
	Resolve struct{ Value string }
	// Lookup asks the platform what became of the open attempts of targets.
	Lookup struct{ Targets []int }
	// Prepare starts what precedes the visible calls of targets. Decide is asked
	// again afterwards.
	Prepare struct {
		Targets []int
		Ahead   bool
	}
	// ReportPreparation tells people and the connection that a preparation failed,
	// and forgets it unless it was made ahead of the post's time.
	ReportPreparation struct {
		Target int
		Ahead  bool
	}
	// FindEarlier asks the archive what became of an earlier post of the name. Decide is
	// asked again afterwards.
	FindEarlier struct{}
	// Claim claims targets in one write, sends them and records the results.
	Claim struct{ Targets []int }
	// Write stores the status if it has changed, and then tells the event.
	Write struct{ Event Event }
	// Release takes the finalizer off a post that is being deleted.
	Release struct{}
	// Wait comes back at a time; the zero time means when something changes.
	Wait struct {
		Until time.Time
		// ForInputs asks to be woken when a connection or a file of the post changes.
		ForInputs bool
		// InTurn lets the posts of other teams that are due then go between.
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

// Event is what the owner of a post is told when its status was written. The zero
// Event tells nothing. A target that a decision fails has its own event, which the controller emits.
type Event struct {
	// Warning is set if a person has to act.
	Warning bool
	// Reason is a word of v1alpha1.
	Reason string
	// Message says it in words; empty for that of the Ready condition.
	Message string
}

// Timing returns what the protocol works with for the post on a platform; false if
// this process cannot publish there.
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

// connection returns the connection of a target; nil if it does not exist.
func (f *Facts) connection(target int) *v1alpha1.Connection {
	return f.Connections[f.Post.Spec.Targets[target].ConnectionRef.Name]
}

// blockedUntil is when the platform of a target takes calls again; zero if it
// takes them now.
func (f *Facts) blockedUntil(target int) time.Time {
	if conn := f.connection(target); conn != nil {
		return f.BlockedUntil(conn)
	}
	return time.Time{}
}

// spread returns a part of a duration that is the same for the post each time, so that
// what would come in step with other posts comes one after another.
func (f *Facts) spread(over time.Duration) time.Duration { return jitter.Within(over, f.Post.UID) }
