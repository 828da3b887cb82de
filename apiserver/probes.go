// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
)

// ProbeChecks return an error if a process is not alive or ready. The same cause always has the same error text.
type ProbeChecks struct {
	Alive, Ready func(*http.Request) error
}

// ProbeHandler serves a process's liveness and readiness under /livez and /readyz. The kubelet does not send a token,
// so the probes are open to the network: the response contains only the result, and the log the cause. The manager's
// probes are the same.
func ProbeHandler(log *slog.Logger, checks ProbeChecks) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /livez", &probe{log: log, state: "alive", check: checks.Alive})
	mux.Handle("GET /readyz", &probe{log: log, state: "ready", check: checks.Ready})
	return mux
}

type probe struct {
	log   *slog.Logger
	state string
	check func(*http.Request) error

	mu sync.Mutex
	// logged is the cause that was last logged; empty while the probe succeeds.
	logged string
}

func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := p.check(r)
	if r.Context().Err() == nil { // otherwise the client may have disconnected
		p.logChange(r, err)
	}
	if err != nil {
		http.Error(w, "not "+p.state, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// logChange logs only changes since the last response, because any client may call as often as it likes.
func (p *probe) logChange(r *http.Request, err error) {
	cause := ""
	if err != nil {
		cause = err.Error()
	}
	p.mu.Lock()
	news := cause != p.logged
	p.logged = cause
	p.mu.Unlock()
	switch {
	case !news:
	case err != nil:
		p.log.InfoContext(r.Context(), "A probe fails", "probe", p.state, "cause", cause)
	default:
		p.log.InfoContext(r.Context(), "A probe succeeds again", "probe", p.state)
	}
}
