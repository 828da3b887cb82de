// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// maxControlBody is the maximum request size of the control API, in bytes.
const maxControlBody = 1 << 20

// controlError is an error response from the control API.
type controlError struct {
	status  int
	code    string
	message string
}

// Error returns the message.
func (e *controlError) Error() string { return e.message }

func badInput(format string, args ...any) error {
	return &controlError{status: http.StatusBadRequest, code: "INVALID", message: fmt.Sprintf(format, args...)}
}

func missing(format string, args ...any) error {
	return &controlError{status: http.StatusNotFound, code: "NOT_FOUND", message: fmt.Sprintf(format, args...)}
}

// control is a control API operation. It returns the value for "data", or nil for status 204 without a body.
type control func(*http.Request) (status int, data any, err error)

// registerControl adds the control API to the server. It rejects cross-origin requests from browsers.
func (s *Server) registerControl() {
	guard := http.NewCrossOriginProtection()
	handle := func(path string, methods map[string]control) {
		s.mux.Handle("/_control"+path, guard.Handler(s.controlHandler(methods)))
	}
	handle("/posts", map[string]control{http.MethodGet: s.getPosts})
	handle("/calls", map[string]control{http.MethodGet: s.getCalls})
	handle("/faults", map[string]control{http.MethodGet: s.getFaults, http.MethodPost: s.postFault, http.MethodDelete: s.deleteFaults})
	handle("/accounts/{platform}/{id}", map[string]control{http.MethodGet: s.getAccount, http.MethodPut: s.putAccount})
	handle("/reset", map[string]control{http.MethodPost: s.reset})
	handle("/", nil)
}

func (s *Server) controlHandler(methods map[string]control) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		act, ok := methods[r.Method]
		if !ok {
			s.refuseMethod(w, methods, r)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
		status, data, err := act(r)
		switch {
		case err != nil:
			s.writeControlError(w, err)
		case data == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			writeControl(w, status, map[string]any{"data": data})
		}
	})
}

func (s *Server) refuseMethod(w http.ResponseWriter, methods map[string]control, r *http.Request) {
	if len(methods) == 0 {
		s.writeControlError(w, missing("the control API has no %s", r.URL.Path))
		return
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	w.Header().Set("Allow", allowed)
	s.writeControlError(w, &controlError{
		status: http.StatusMethodNotAllowed, code: "METHOD_NOT_ALLOWED",
		message: fmt.Sprintf("%s does not take %s, only %s", r.URL.Path, r.Method, allowed),
	})
}

func (s *Server) writeControlError(w http.ResponseWriter, err error) {
	var known *controlError
	if !errors.As(err, &known) {
		s.log.Error("the control API failed", "error", err)
		known = &controlError{status: http.StatusInternalServerError, code: "INTERNAL", message: err.Error()}
	}
	writeControl(w, known.status, map[string]any{"error": map[string]string{"code": known.code, "message": known.message}})
}

func writeControl(w http.ResponseWriter, status int, body any) {
	content, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(content, '\n')) // the client may have disconnected
}

// readControl decodes a JSON object and rejects unknown fields. An empty body counts as an empty object.
func readControl(r *http.Request, into any) error {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return badInput("the body cannot be read: %v", err)
	}
	return decodeControl(content, into)
}

func decodeControl(content []byte, into any) error {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil
	}
	if err := simulator.Decode(content, into); err != nil {
		return badInput("the body is not as expected: %v", err)
	}
	return nil
}

// simulated returns the named platform's simulator.
func (s *Server) simulated(name string) (platform, error) {
	if p, ok := s.platforms[name]; ok {
		return p, nil
	}
	return nil, badInput("platform %q is not simulated here, only %q", name, slices.Sorted(maps.Keys(s.platforms)))
}

// controlPost represents a post in the control API.
type controlPost struct {
	ID        string        `json:"id"`
	Platform  string        `json:"platform"`
	AccountID string        `json:"account_id"`
	Text      string        `json:"text"`
	Title     string        `json:"title"`
	Media     []state.Media `json:"media"`
	InReplyTo string        `json:"in_reply_to"`
	URL       string        `json:"url"`
	Privacy   string        `json:"privacy"`
	Draft     bool          `json:"draft"`
	CreatedAt string        `json:"created_at"`
	// Detail holds the platform's options for the post.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// timeFormat is RFC 3339 with exactly three digits for milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func (s *Server) getPosts(r *http.Request) (int, any, error) {
	query := r.URL.Query()
	name := query.Get("platform")
	if name != "" {
		if _, err := s.simulated(name); err != nil {
			return 0, nil, err
		}
	}
	out := []controlPost{}
	for _, post := range s.store.Posts(name, query.Get("account")) {
		account, _ := s.store.Account(state.Key{Platform: post.Platform, ID: post.AccountID})
		shown := controlPost{
			ID: post.ID, Platform: post.Platform, AccountID: post.AccountID, Text: post.Text, Title: post.Title,
			Media: post.Media, InReplyTo: post.InReplyTo, Privacy: post.Privacy, Draft: post.Draft,
			URL:       s.site(r) + s.platforms[post.Platform].PostPath(account.Username, post.ID),
			CreatedAt: post.CreatedAt().Format(timeFormat), Detail: post.Detail,
		}
		if shown.Media == nil {
			shown.Media = []state.Media{}
		}
		out = append(out, shown)
	}
	return http.StatusOK, out, nil
}

func (s *Server) getCalls(*http.Request) (int, any, error) {
	return http.StatusOK, s.board.Counts(), nil
}

func (s *Server) reset(*http.Request) (int, any, error) {
	s.board.ClearFaults()
	if err := s.store.Reset(); err != nil {
		return 0, nil, err
	}
	s.board.ClearCounts()
	if err := s.blobs.Reset(); err != nil {
		return 0, nil, err
	}
	s.log.Info("sandbox reset")
	return 0, nil, nil
}
