// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness determines whether a connection can be posted to now: from a recent check, or by asking the manager
// for one and waiting for its result. The apiserver itself has no tokens and does not call platforms.
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

// responseTimeout is how long the manager has for a check.
const responseTimeout = 5 * time.Second

// Prober reads connections and requests their checks.
type Prober interface {
	// Get returns a connection from the cache, or nil.
	Get(namespace, name string) *v1alpha1.Connection
	// Changed returns a channel that is closed when any connection next changes.
	Changed() <-chan struct{}
	// RequestProbe stores a request for a check and returns its resourceVersion.
	RequestProbe(ctx context.Context, namespace, name, token string) (uint64, error)
}

// Checker checks connections. It is safe for concurrent use; concurrent checks of the same connection share one
// request.
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

// Check reports whether a connection can be posted to. It may take five seconds. If the context is done earlier, the
// state is Unavailable.
func (c *Checker) Check(ctx context.Context, connection *v1alpha1.Connection) Result {
	if connection.Spec.Disabled {
		return Result{State: Reconnect, Message: "it is disabled"}
	}
	if fresh(connection, c.clock.Now()) {
		return Result{State: Ready}
	}
	namespace, name := connection.Namespace, connection.Name
	// The check outlives its request, because other requests may share it.
	pending := c.pending.DoChan(namespace+"/"+name, func() (any, error) {
		return c.probe(context.WithoutCancel(ctx), namespace, name), nil
	})
	select {
	case done := <-pending:
		return done.Val.(Result) //nolint:forcetypeassert // the result of probe
	case <-ctx.Done():
		return noAnswer
	}
}

func (c *Checker) probe(ctx context.Context, namespace, name string) Result {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	token := rand.Text()
	asked, err := c.connections.RequestProbe(ctx, namespace, name, token)
	switch {
	case apierrors.IsNotFound(err):
		return Result{State: Reconnect, Message: "it has been removed"}
	case ctx.Err() != nil:
		return noAnswer
	case err != nil:
		c.log.ErrorContext(ctx, "Cannot request a connection check", "namespace", namespace, "connection", name, "error", err)
		return Result{Message: "its check could not be requested"}
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

// goodFor is how long a successful check is valid.
const goodFor = time.Minute

// State is a connection's readiness.
type State int

const (
	// Unavailable means that the state is currently unknown.
	Unavailable State = iota
	// Ready means that the connection can be posted to.
	Ready
	// Reconnect means that a user has to act first.
	Reconnect
)

// String returns the value of the metrics label "answer".
func (v State) String() string { return [...]string{"unavailable", "ready", "reconnect"}[v] }

// Result is the result of a check.
type Result struct {
	State State
	// Message is the human-readable reason; may be empty.
	Message string
}

// noAnswer is the result if the manager does not respond in time.
var noAnswer = Result{Message: "its platform has not answered yet"}

// fresh reports whether a recent check succeeded. A failed check never counts, because the problem may have been fixed
// since.
func fresh(connection *v1alpha1.Connection, now time.Time) bool {
	status := &connection.Status
	return status.LastProbedAt != nil &&
		now.Sub(status.LastProbedAt.Time) < goodFor &&
		status.ObservedGeneration == connection.Generation &&
		meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
}

// Last returns the result of a connection's last check, regardless of its age. It requests no check.
func Last(connection *v1alpha1.Connection) Result { return resultOf(connection) }

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

// probeDone reports whether the check with this token is done. The connection must be at least as new as the request,
// which was stored with the version asked. If another replica has overwritten the request, the result of that replica's
// check counts, because it started after this one was requested.
func probeDone(connection *v1alpha1.Connection, token string, asked uint64) bool {
	version, err := postindex.ParseVersion(connection.ResourceVersion)
	handled := connection.Status.LastHandledProbe
	return err == nil && version >= asked && handled != "" &&
		(handled == token || handled == connection.Annotations[v1alpha1.ProbeAnnotation])
}
