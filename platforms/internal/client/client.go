// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client makes the calls of the platforms and says what it means that
// one has no answer, or no usable one.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/transport"
)

// Client calls one host of a platform.
type Client struct {
	// Platform labels the metrics, and Name is what people call it.
	Platform, Name string
	// BaseURL is the host's address, without a slash at the end.
	BaseURL string
	// Addresses says which addresses of the platform's answers are called.
	Addresses AddressPolicy
	// Transport is the way out.
	Transport *transport.Client
}

// Call is one request.
type Call struct {
	// Action labels the metrics, as in transport.Call.
	Action string
	// Path follows the base URL. It begins with a slash and may bring a query.
	Path string
	// URL is used instead of base URL and path: an address that the platform
	// handed out, and that carries authority. It is called only if Client.Named has
	// its host, and no error tells it.
	URL string
	// Method defaults to GET without a body, and to POST with one.
	Method string
	// Token is sent as a bearer token; empty for a call that needs none. It never goes
	// to an address that the platform handed out.
	Token string
	// Header holds further header fields; may be nil.
	Header http.Header
	// Body is what is sent.
	Body Body
	// Timeout bounds the call.
	Timeout time.Duration
}

// Body is what a request sends. The zero value sends nothing.
type Body struct {
	// Content holds Length bytes of a media type.
	Content io.Reader
	Length  int64
	Type    string

	err error
}

// Fields is a body of fields.
func Fields(fields url.Values) Body {
	content := fields.Encode()
	return Body{Content: strings.NewReader(content), Length: int64(len(content)), Type: "application/x-www-form-urlencoded"}
}

// JSON is a body that a platform reads under the given media type. What is sent
// is what was written: <, > and & are not escaped.
func JSON(mediaType string, v any) Body {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return Body{Content: &content, Length: int64(content.Len()), Type: mediaType, err: err}
}

// errBadBaseURL is why no request could be made. What net/http says would tell the
// address.
var errBadBaseURL = errors.New("the configured address is not a URL")

// Do makes the call once. Errors are *transport.Error.
func (c *Client) Do(ctx context.Context, call Call) (*transport.Response, error) {
	if call.Body.err != nil {
		return nil, &transport.Error{Err: call.Body.err}
	}
	where := resolvedAddress{address: c.BaseURL + call.Path}
	if call.URL != "" {
		var err error
		if where, err = c.Addresses.resolve(call.URL); err != nil {
			return nil, &transport.Error{Err: err}
		}
	}
	method, body := cmp.Or(call.Method, http.MethodGet), call.Body.Content
	switch {
	case body == nil:
		body = http.NoBody
	case call.Method == "":
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, where.address, body)
	switch {
	case err != nil && call.URL != "":
		return nil, &transport.Error{Err: errNoURL}
	case err != nil:
		return nil, &transport.Error{Err: errBadBaseURL}
	}
	req.ContentLength = call.Body.Length
	if call.Header != nil {
		req.Header = call.Header
	}
	if call.Body.Type != "" {
		req.Header.Set("Content-Type", call.Body.Type)
	}
	if call.Token != "" && call.URL == "" {
		req.Header.Set("Authorization", "Bearer "+call.Token)
	}
	return c.Transport.Do(ctx, transport.Call{Platform: c.Platform, Action: call.Action, Timeout: call.Timeout, Named: where.named}, req)
}

// NotSent reports whether nothing of a call that failed with this error can have
// reached the platform.
func NotSent(err error) bool {
	failure, ok := errors.AsType[*transport.Error](err)
	return ok && !failure.Sent
}

// Address returns a configured address, or else the default, without a slash at
// the end.
func Address(configured, otherwise string) string {
	return strings.TrimRight(cmp.Or(configured, otherwise), "/")
}

// Wait waits for so long. It returns the cause if the context ends before.
func Wait(ctx context.Context, clk clock.Clock, pause time.Duration) error {
	timer := clk.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
