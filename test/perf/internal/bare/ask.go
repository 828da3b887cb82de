// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/herald-social/herald/test/perf/internal/measure"
)

// Request is one of the requests that ask sends.
type Request struct {
	// Method, URL and Body describe the request. Key is the API key, if any. The body is JSON.
	Method string `json:"method"`
	URL    string `json:"url"`
	Key    string `json:"key,omitempty"`
	Body   []byte `json:"body,omitempty"`
	// Status is the expected status.
	Status int `json:"status"`
}

// Latency is the time from the first byte sent to the last byte received, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// ask sends requests in order and measures their latency. Each worker has its own connection. The requests are encoded
// in advance, so the client uses little CPU time, which would otherwise affect Herald.
type ask struct {
	config Config
	wires  [][]byte
	conns  []*askConn
}

type askConn struct {
	net.Conn
	answers *bufio.Reader
	// next is the index of the next request; took are the latencies in milliseconds.
	next int
	took []float64
}

func newAsk(config Config) (*ask, error) {
	if len(config.Requests) == 0 {
		return nil, errors.New("ask has no requests")
	}
	a := &ask{config: config}
	for _, r := range config.Requests {
		wire, err := r.wire()
		if err != nil {
			return nil, err
		}
		a.wires = append(a.wires, wire)
	}
	to, err := url.Parse(config.Requests[0].URL)
	if err != nil {
		return nil, err
	}
	for worker := range config.InFlight {
		conn, err := net.Dial("tcp", to.Host)
		if err != nil {
			return nil, err
		}
		a.conns = append(a.conns, &askConn{Conn: conn, answers: bufio.NewReader(conn), next: worker % len(a.wires)})
	}
	return a, nil
}

func (r *Request) wire() ([]byte, error) {
	request, err := http.NewRequest(r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.Key != "" {
		request.Header.Set("Authorization", "Bearer "+r.Key)
	}
	if len(r.Body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	var wire bytes.Buffer
	if err := request.Write(&wire); err != nil {
		return nil, err
	}
	return wire.Bytes(), nil
}

func (a *ask) warm(ctx context.Context) error {
	if err := each(ctx, a.config.InFlight, a.config.Warm, a.requestOne); err != nil {
		return err
	}
	for _, conn := range a.conns {
		conn.took = nil
	}
	return nil
}

// run uses one CPU and turns the garbage collector off, because the client's own pauses would count as the server's
// time.
func (a *ask) run(ctx context.Context) error {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return each(ctx, a.config.InFlight, a.config.Count, a.requestOne)
}

func (a *ask) requestOne(_ context.Context, worker int) error {
	conn := a.conns[worker]
	which := conn.next
	conn.next = (conn.next + a.config.InFlight) % len(a.wires)
	started := time.Now()
	if _, err := conn.Write(a.wires[which]); err != nil {
		return err
	}
	response, err := http.ReadResponse(conn.answers, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if want := a.config.Requests[which].Status; response.StatusCode != want {
		answer, err := io.ReadAll(response.Body)
		return fmt.Errorf("%s responds %s, want %d: %s (%w)", a.config.Requests[which].URL, response.Status, want, answer, err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	conn.took = append(conn.took, float64(time.Since(started).Microseconds())/1000)
	return nil
}

// latency summarizes the measurements.
func (a *ask) latency() *Latency {
	var took []float64
	for _, conn := range a.conns {
		took = append(took, conn.took...)
	}
	slices.Sort(took)
	return &Latency{P50: measure.Quantile(took, 0.5), P99: measure.Quantile(took, 0.99), Max: measure.Quantile(took, 1)}
}
