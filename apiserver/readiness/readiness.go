// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness finds out whether a connection can be posted to right now:
// from a recent check, or by asking the manager for one and waiting for its
// answer. The apiserver itself holds no token and calls no platform.
package readiness

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// answerWithin is how long the manager may take to check a connection.
const answerWithin = 5 * time.Second

// Prober is where connections are seen and their checks asked for.
type Prober interface {
	// Get returns a connection from memory, or nil.
	Get(namespace, name string) *v1alpha1.Connection
	// Changed returns a channel that is closed at the next change of any
	// connection.
	Changed() <-chan struct{}
	// RequestProbe stores a request for a check and returns the
	// resourceVersion it was stored with.
	RequestProbe(ctx context.Context, namespace, name, token string) (uint64, error)
}

// Checker checks connections. Its methods may be called from many goroutines
// at once; those that ask about the same connection share one request.
type Checker struct {
	connections Prober
	clock       clock.PassiveClock
	log         *slog.Logger
	pending     singleflight.Group
}

// NewChecker returns a Checker.
func NewChecker(connections Prober, clock clock.PassiveClock, log *slog.Logger) *Checker {
	return &Checker{connections: connections, clock: clock, log: log}
}

// Check says whether a connection can be posted to. It may take five seconds;
// if the context ends before, the state is Unavailable.
func (c *Checker) Check(ctx context.Context, connection *v1alpha1.Connection) Result {
	if connection.Spec.Disabled {
		return Result{State: Reconnect, Message: "it is disabled"}
	}
	if fresh(connection, c.clock.Now()) {
		return Result{State: Ready}
	}
	namespace, name := connection.Namespace, connection.Name
	// The check outlives the request that began it: others may wait for it too.
	pending := c.pending.DoChan(namespace+"/"+name, func() (any, error) {
		return c.probe(context.WithoutCancel(ctx), namespace, name), nil
	})
	select {
	case done := <-pending:
		return done.Val.(Result) //nolint:forcetypeassert // what ask returns
	case <-ctx.Done():
		return noAnswer
	}
}

// probe requests a check and waits for the answer.
func (c *Checker) probe(ctx context.Context, namespace, name string) Result {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	token := rand.Text()
	asked, err := c.connections.RequestProbe(ctx, namespace, name, token)
	switch {
	case apierrors.IsNotFound(err):
		return Result{State: Reconnect, Message: "it has been removed"}
	case ctx.Err() != nil:
		return noAnswer
	case err != nil:
		c.log.ErrorContext(ctx, "Cannot ask for the check of a connection", "namespace", namespace, "connection", name, "error", err)
		return Result{Message: "its check could not be asked for"}
	}
	for {
		changed := c.connections.Changed()
		connection := c.connections.Get(namespace, name)
		if connection != nil && probeDone(connection, token, asked) {
			return resultOf(connection)
		}
		select {
		case <-ctx.Done():
			return noAnswer
		case <-changed:
		}
	}
}

// goodFor is how long a good check counts.
const goodFor = time.Minute

// State says whether a connection can be posted to.
type State int

// States of a connection.
const (
	// Unavailable: it is not known at the moment.
	Unavailable State = iota
	// Ready: it can.
	Ready
	// Reconnect: not before a person does something about it.
	Reconnect
)

// String is the value of the label "answer" in metrics.
func (v State) String() string { return [...]string{"unavailable", "ready", "reconnect"}[v] }

// Result is the answer to a check.
type Result struct {
	State State
	// Message says why, in words; it may be empty.
	Message string
}

// noAnswer is the result when the manager did not answer in time.
var noAnswer = Result{Message: "its platform has not answered yet"}

// fresh reports whether a good check of the connection as it stands now is
// recent enough to count. A bad one never is: it may have been mended since.
func fresh(connection *v1alpha1.Connection, now time.Time) bool {
	status := &connection.Status
	return status.LastProbedAt != nil &&
		now.Sub(status.LastProbedAt.Time) < goodFor &&
		status.ObservedGeneration == connection.Generation &&
		meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
}

// Last is what the last check of a connection found, however long ago it was. It asks for
// none.
func Last(connection *v1alpha1.Connection) Result { return resultOf(connection) }

// resultOf reads the answer to a check out of the Ready condition.
func resultOf(connection *v1alpha1.Connection) Result {
	ready := meta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return noAnswer
	}
	if ready.Status == metav1.ConditionTrue {
		return Result{State: Ready}
	}
	switch ready.Reason {
	case v1alpha1.ReasonTokenExpired, v1alpha1.ReasonRevoked,
		v1alpha1.ReasonCredentialsNotFound, v1alpha1.ReasonCredentialsInvalid,
		v1alpha1.ReasonAccountMismatch, v1alpha1.ReasonDisabled:
		return Result{State: Reconnect, Message: ready.Message}
	default:
		return Result{State: Unavailable, Message: ready.Message}
	}
}

// probeDone reports whether the check that was asked for with token is done, on
// a connection that is as new as that request, which was stored as version asked.
// If another replica's request has taken the place of ours, its answer counts: that
// check began after ours was asked for.
func probeDone(connection *v1alpha1.Connection, token string, asked uint64) bool {
	version, err := postindex.ParseVersion(connection.ResourceVersion)
	handled := connection.Status.LastHandledProbe
	return err == nil && version >= asked && handled != "" &&
		(handled == token || handled == connection.Annotations[v1alpha1.ProbeAnnotation])
}
