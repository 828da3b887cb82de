// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"
)

// Run serves until the context is done, and then shuts down in order: it reports not ready, waits until load balancers
// stop sending requests, completes the requests in progress, and stops the watches last. Call it only once.
func (s *Server) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	// The watches outlive ctx: requests that complete during shutdown need them.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	failed := make(chan error, 2)
	serve := func(server *http.Server, listener net.Listener, what string) {
		background.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve the %s: %w", what, err)
			}
		})
	}
	if s.config.HealthListener != nil {
		probes, pool := probeListener(s.config.HealthListener)
		s.health.ConnState = pool.State
		serve(s.health, probes, "probes")
		defer s.health.Close() //nolint:errcheck // nothing to lose
	}
	if !s.watch(ctx, watching, &background) {
		return s.config.Listener.Close()
	}
	serve(s.api, s.listener(), "API")
	s.ready.Store(true)
	if s.config.Started != nil {
		s.config.Started()
	}
	s.config.Log.InfoContext(ctx, "Serving the API", "address", s.config.Listener.Addr().String())

	select {
	case err := <-failed:
		return errors.Join(err, s.api.Close())
	case <-ctx.Done():
	}
	return s.drain(watching)
}

// listener returns the API's listener. TLS is below the envelopes, which rules out HTTP/2.
func (s *Server) listener() net.Listener {
	bounded := s.connections.Listener(s.config.Listener)
	if s.config.TLS == nil {
		return envelopes{bounded}
	}
	config := s.config.TLS.Clone()
	config.NextProtos = []string{"http/1.1"}
	return envelopes{&handshakeListener{
		Listener: bounded, config: config, clock: s.config.Clock, log: s.config.Log,
		limit: rate.NewLimiter(rate.Every(handshakeLogEvery), handshakeLogBurst),
	}}
}

// watch starts the caches and waits until they have synced. It returns false if ctx was done first.
func (s *Server) watch(ctx, watching context.Context, background *sync.WaitGroup) bool {
	background.Go(func() { s.used.Run(watching) })
	// The REST API neither depends on the web application nor waits for it.
	background.Go(func() { s.web.run(watching) })
	synced := make([]cache.InformerSynced, len(s.informers))
	for i, informer := range s.informers {
		background.Go(func() { informer.RunWithContext(watching) })
		synced[i] = informer.HasSynced
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return false
	}
	// Posts come last, because their summaries need the connections.
	background.Go(func() { s.posts.Run(watching) })
	if s.archived != nil {
		background.Go(func() { s.archived.Run(watching) })
	}
	background.Go(func() { s.pending.Run(watching) })
	for _, known := range []<-chan struct{}{s.posts.Synced(), s.pending.Synced()} {
		select {
		case <-known:
		case <-ctx.Done():
			return false
		}
	}
	background.Go(func() { s.budgets.run(watching) })
	return true
}

func (s *Server) drain(ctx context.Context) error {
	s.ready.Store(false)
	s.config.Log.InfoContext(ctx, "Stopping", "delay", s.config.ShutdownDelay, "timeout", s.config.ShutdownTimeout)
	s.api.SetKeepAlivesEnabled(false)
	if s.config.ShutdownDelay > 0 {
		<-s.config.Clock.After(s.config.ShutdownDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	if err := s.api.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("requests were still in progress after %s: %w", s.config.ShutdownTimeout, err), s.api.Close())
	}
	return nil
}
