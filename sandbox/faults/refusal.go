// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// Refusal is a reason that platforms give for not publishing, and have given even for posts that they had published:
// Instagram's spam block (gitroomhq/postiz-app#1681) and Facebook's transient error (arsduo/koala#699).
type Refusal string

// The refusals. Each platform has its own wording for them.
const (
	// RefusalRateLimit: there were too many requests.
	RefusalRateLimit Refusal = "rate_limit"
	// RefusalSpam: the account is temporarily blocked from posting.
	RefusalSpam Refusal = "spam"
	// RefusalPermission: the account or its token is not allowed to post.
	RefusalPermission Refusal = "permission"
	// RefusalInvalid: the request is invalid.
	RefusalInvalid Refusal = "invalid"
)

// Refusals returns all refusals.
func Refusals() []Refusal {
	return []Refusal{RefusalRateLimit, RefusalSpam, RefusalPermission, RefusalInvalid}
}

// normalizedRefusal checks a fault of kind PublishesAndRefuses.
func (f Fault) normalizedRefusal() (Fault, error) {
	switch {
	case f.Operation != Publish && f.Operation != Any:
		return f, fmt.Errorf("kind publishes_and_refuses works on operation publish (or *), not on %q", f.Operation)
	case f.Refusal == "" && f.Status == 0:
		return f, fmt.Errorf("kind publishes_and_refuses needs a status, or a refusal: one of %q", Refusals())
	case f.Refusal != "" && !slices.Contains(Refusals(), f.Refusal):
		return f, fmt.Errorf("refusal %q is not known; use one of %q", f.Refusal, Refusals())
	case f.Refusal != "" && (f.Status != 0 || f.Body != nil || f.Header != nil):
		return f, fmt.Errorf("a refusal has its own status, body and headers; leave them out, or leave out the refusal")
	case f.Refusal == "" && (f.Status < 200 || f.Status > 599):
		return f, fmt.Errorf("status %d cannot be answered; use 200 to 599", f.Status)
	case f.RetryAfter == 0:
		f.RetryAfter = defaultRetryAfter
	}
	return f, nil
}

// publishAndRefuse acts and replaces the success response with a refusal. If the platform itself rejects the request,
// nothing was published and its response is sent.
func (route Route) publishAndRefuse(w http.ResponseWriter, req *Request, f *Fault) {
	own := newAnswer()
	route.Act(own, req)
	switch {
	case own.status >= http.StatusMultipleChoices:
		own.send(w)
	case f.Refusal == RefusalRateLimit:
		route.Dialect.RateLimited(w, req, route.Operation, f.RetryAfter)
	case f.Refusal != "":
		route.Dialect.Refused(w, route.Operation, f.Refusal)
	case f.Body == nil && f.Header == nil:
		route.status(w, req, f.Status)
	default:
		told := &answer{header: f.Header, status: f.Status}
		_, _ = told.Write(f.Body) // writing to a buffer never fails
		told.send(w)
	}
}

// answer buffers an operation's response.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}} }

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// send writes the buffered response to w.
func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client may have disconnected
}
