// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// plain is a minimal HTTP server in Go: it parses the parameters of a list request and sends as many bytes as Herald
// does. It does not authenticate or check anything.
type plain struct {
	config   Config
	listener net.Listener
	answer   []byte
}

// warm opens the listener. From then on requests wait until they are served.
func (p *plain) warm(context.Context) error {
	var err error
	p.answer = bytes.Repeat([]byte("x"), p.config.Reply)
	p.listener, err = net.Listen("tcp", p.config.Address)
	return err
}

// run serves until the program is killed.
func (p *plain) run(ctx context.Context) error {
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(p.listener) })
	group.Go(func() error { <-inner.Done(); return server.Close() })
	return group.Wait()
}

func (p *plain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for _, name := range []string{"page", "limit"} {
		if _, err := strconv.Atoi(query.Get(name)); query.Has(name) && err != nil {
			http.Error(w, fmt.Sprintf("%s: %v", name, err), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(p.answer) // the client may have disconnected
}
