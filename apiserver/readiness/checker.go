// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// answerWithin is how long the manager may take to check a connection.
const answerWithin = 5 * time.Second

// Connections is where connections are seen and their checks asked for.
type Connections interface {
	// Get returns a connection from memory, or nil.
	Get(namespace, name string) *v1alpha1.Connection
	// Changes returns a channel that gets a value after each change of the
	// connection, until stop is called.
	Changes(namespace, name string) (changes <-chan struct{}, stop func())
	// RequestProbe stores a request for a check and returns the
	// resourceVersion it was stored with.
	RequestProbe(ctx context.Context, namespace, name, token string) (uint64, error)
}

// Checker checks connections. Its methods may be called from many goroutines
// at once; those that ask about the same connection share one request.
type Checker struct {
	connections Connections
	clock       clock.Clock
	log         *slog.Logger

	mu      sync.Mutex
	pending map[name]*check
}

type name struct{ namespace, name string }

type check struct {
	done   chan struct{}
	result Result // read after done is closed
}

// NewChecker returns a Checker.
func NewChecker(connections Connections, clock clock.Clock, log *slog.Logger) *Checker {
	return &Checker{connections: connections, clock: clock, log: log, pending: map[name]*check{}}
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
	pending := c.join(ctx, name{connection.Namespace, connection.Name})
	select {
	case <-pending.done:
		return pending.result
	case <-ctx.Done():
		return noAnswer
	}
}

// join returns the check of a connection that is under way, or begins one. It
// outlives the request that began it, for others may wait for it too.
func (c *Checker) join(ctx context.Context, of name) *check {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pending := c.pending[of]; pending != nil {
		return pending
	}
	pending := &check{done: make(chan struct{})}
	c.pending[of] = pending
	go func() {
		pending.result = c.ask(context.WithoutCancel(ctx), of)
		c.mu.Lock()
		delete(c.pending, of)
		c.mu.Unlock()
		close(pending.done)
	}()
	return pending
}

type request struct {
	version uint64
	err     error
}

// ask requests a check and waits for the answer.
func (c *Checker) ask(ctx context.Context, of name) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, stop := c.connections.Changes(of.namespace, of.name)
	defer stop()
	timer := c.clock.NewTimer(answerWithin)
	defer timer.Stop()

	token := rand.Text()
	requested := make(chan request, 1)
	go func() {
		version, err := c.connections.RequestProbe(ctx, of.namespace, of.name, token)
		requested <- request{version, err}
	}()

	var asked *request
	for {
		select {
		case <-timer.C():
			return noAnswer
		case <-changes:
		case r := <-requested:
			if r.err != nil {
				return c.notAsked(ctx, of, r.err)
			}
			asked = &r
		}
		if asked == nil {
			continue
		}
		if result, done := c.read(of, token, asked.version); done {
			return result
		}
	}
}

// read looks for the answer in the latest version of the connection that is in
// memory.
func (c *Checker) read(of name, token string, asked uint64) (Result, bool) {
	connection := c.connections.Get(of.namespace, of.name)
	if connection == nil {
		return Result{}, false
	}
	version, err := postindex.ParseVersion(connection.ResourceVersion)
	if err != nil || version < asked || !answered(connection, token) {
		return Result{}, false
	}
	return judge(connection), true
}

func (c *Checker) notAsked(ctx context.Context, of name, err error) Result {
	if apierrors.IsNotFound(err) {
		return Result{State: Reconnect, Message: "it has been removed"}
	}
	c.log.ErrorContext(ctx, "Cannot ask for the check of a connection", "namespace", of.namespace, "connection", of.name, "error", err)
	return Result{Message: "its check could not be asked for"}
}
