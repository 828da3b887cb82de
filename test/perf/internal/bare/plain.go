// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// Reply is what plain says to every request of a method.
type Reply struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Body   []byte `json:"body"`
}

// plain is the least that an HTTP server in Go can do: it reads the parameters of a GET, or decodes the body of a POST,
// and sends what Herald sent to the same request. It knows nobody and checks nothing.
type plain struct {
	config   Config
	listener net.Listener
}

// plainPost is what the body of a POST is decoded into: the fields of a post of category text.
type plainPost struct {
	Category    string     `json:"category"`
	ScheduledAt *time.Time `json:"scheduled_at"`
	Draft       bool       `json:"draft"`
	Targets     []struct {
		ConnectionID string `json:"connection_id"`
		Caption      string `json:"caption"`
	} `json:"targets"`
}

func newPlain(config Config) (*plain, error) {
	if len(config.Answers) == 0 {
		return nil, errors.New("plain has nothing to answer")
	}
	return &plain{config: config}, nil
}

// warm opens the address: from then on requests wait, if they are not answered already.
func (p *plain) warm(context.Context) error {
	var err error
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
	answer, ok := p.config.Answers[r.Method]
	if !ok {
		http.Error(w, "no answer", http.StatusMethodNotAllowed)
		return
	}
	if err := decode(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", answer.Type)
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // whoever asked has gone
}

// decode reads what Herald reads of a list's parameters, or of the body of a POST.
func decode(r *http.Request) error {
	if r.Method == http.MethodPost {
		var post plainPost
		return json.NewDecoder(r.Body).Decode(&post)
	}
	query := r.URL.Query()
	for _, name := range []string{"page", "limit"} {
		if !query.Has(name) {
			continue
		}
		if _, err := strconv.Atoi(query.Get(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
