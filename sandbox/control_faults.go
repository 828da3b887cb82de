// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/herald-social/herald/sandbox/faults"
)

// maxControlSeconds limits durations in the control API to a day.
const maxControlSeconds = 86400

// controlFault represents a fault in the control API.
type controlFault struct {
	Platform  string           `json:"platform"`
	Operation faults.Operation `json:"operation"`
	Kind      faults.Kind      `json:"kind"`
	Times     *int             `json:"times,omitempty"`
	Percent   int              `json:"percent,omitempty"`
	Seed      uint64           `json:"seed,omitempty"`
	Account   string           `json:"account,omitempty"`
	Status    int              `json:"status,omitempty"`
	Refusal   faults.Refusal   `json:"refusal,omitempty"`
	// Body is sent verbatim if it is JSON. A JSON string is sent as plain text, without its quotes.
	Body        json.RawMessage   `json:"body,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	DelayMillis int64             `json:"delay_ms,omitempty"`
	RetryAfterS int64             `json:"retry_after_s,omitempty"`
}

// jsonAnswer is the content type of a body that is sent verbatim.
const jsonAnswer = "application/json"

// answer returns the fault's body and headers, or nil if it has none.
func (in *controlFault) answer() ([]byte, http.Header, error) {
	if len(in.Body) == 0 && len(in.Headers) == 0 {
		return nil, nil, nil
	}
	body, kind := []byte(in.Body), jsonAnswer
	if bytes.HasPrefix(body, []byte(`"`)) {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return nil, nil, badInput("body is not a JSON string: %v", err)
		}
		body, kind = []byte(text), "text/plain; charset=utf-8"
	}
	header := http.Header{}
	for name, value := range in.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, nil, badInput("headers: %q cannot be a header with the value %q", name, value)
		}
		header.Set(name, value)
	}
	header.Set("Content-Type", cmp.Or(header.Get("Content-Type"), kind))
	return body, header, nil
}

func (s *Server) postFault(r *http.Request) (int, any, error) {
	var in controlFault
	if err := readControl(r, &in); err != nil {
		return 0, nil, err
	}
	if _, err := s.simulated(in.Platform); err != nil {
		return 0, nil, err
	}
	if in.Times != nil && *in.Times < 1 {
		return 0, nil, badInput("times is %d; it is how many requests the fault is for, at least 1", *in.Times)
	}
	if in.DelayMillis > maxControlSeconds*1000 || in.RetryAfterS > maxControlSeconds {
		return 0, nil, badInput("delay_ms and retry_after_s may be a day at most")
	}
	body, header, err := in.answer()
	if err != nil {
		return 0, nil, err
	}
	fault := faults.Fault{
		Platform: in.Platform, Operation: in.Operation, Kind: in.Kind, Percent: in.Percent, Seed: in.Seed, Account: in.Account,
		Status: in.Status, Refusal: in.Refusal, Body: body, Header: header,
		Delay:      time.Duration(in.DelayMillis) * time.Millisecond,
		RetryAfter: time.Duration(in.RetryAfterS) * time.Second,
	}
	if in.Times != nil {
		fault.Times = *in.Times
	}
	fault, err = fault.Normalized()
	if err != nil {
		return 0, nil, badInput("%v", err)
	}
	s.board.Add(fault)
	s.log.Info("fault added", "platform", fault.Platform, "operation", fault.Operation, "kind", fault.Kind, "times", fault.Times)
	return http.StatusCreated, showFault(&fault), nil
}

func (s *Server) getFaults(*http.Request) (int, any, error) {
	out := []controlFault{}
	for _, fault := range s.board.Waiting() {
		out = append(out, showFault(&fault))
	}
	return http.StatusOK, out, nil
}

// showFault is the inverse of postFault's decoding. It includes all of the fault's headers.
func showFault(f *faults.Fault) controlFault {
	out := controlFault{
		Platform: f.Platform, Operation: f.Operation, Kind: f.Kind, Times: &f.Times, Percent: f.Percent, Seed: f.Seed, Account: f.Account,
		Status: f.Status, Refusal: f.Refusal, Body: f.Body, DelayMillis: f.Delay.Milliseconds(), RetryAfterS: int64(f.RetryAfter / time.Second),
	}
	for name := range f.Header {
		if out.Headers == nil {
			out.Headers = map[string]string{}
		}
		out.Headers[name] = f.Header.Get(name)
	}
	if f.Body != nil && f.Header.Get("Content-Type") != jsonAnswer {
		out.Body, _ = json.Marshal(string(f.Body)) // encoding a string cannot fail
	}
	return out
}

func (s *Server) deleteFaults(*http.Request) (int, any, error) {
	s.board.ClearFaults()
	return 0, nil, nil
}
