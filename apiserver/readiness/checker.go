// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

// answerWithin is how long the manager may take to check a connection.
const answerWithin = 5 * time.Second

// Connections is where connections are seen and their checks asked for.
type Connections interface {
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
	connections Connections
	clock       clock.PassiveClock
	log         *slog.Logger
	pending     singleflight.Group
}

// NewChecker returns a Checker.
func NewChecker(connections Connections, clock clock.PassiveClock, log *slog.Logger) *Checker {
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
		return c.ask(context.WithoutCancel(ctx), namespace, name), nil
	})
	select {
	case done := <-pending:
		return done.Val.(Result) //nolint:forcetypeassert // what ask returns
	case <-ctx.Done():
		return noAnswer
	}
}

// ask requests a check and waits for the answer.
func (c *Checker) ask(ctx context.Context, namespace, name string) Result {
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
		if connection != nil && answered(connection, token, asked) {
			return judge(connection)
		}
		select {
		case <-ctx.Done():
			return noAnswer
		case <-changed:
		}
	}
}
