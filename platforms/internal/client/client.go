// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client makes calls to the platforms and classifies the errors of missing and unusable responses.
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

// Client makes calls to one of a platform's hosts.
type Client struct {
	// Platform is the label in metrics and Name the name in messages.
	Platform, Name string
	// BaseURL is the host's address, without a trailing slash.
	BaseURL string
	// Public means that a user chose BaseURL: it is called only at public IP addresses.
	Public bool
	// Addresses decides which URLs from the platform's responses may be called.
	Addresses AddressPolicy
	Transport *transport.Client
}

// Call is one request.
type Call struct {
	// Action is the label in metrics, as in transport.Call.
	Action string
	// Path is appended to the base URL. It starts with a slash and may contain a query.
	Path string
	// URL replaces the base URL and the path. It comes from a platform's response and may grant access, so it is
	// called only if Client.Addresses allows it, and does not appear in errors.
	URL string
	// Method defaults to GET without a body and to POST with one.
	Method string
	// Token is sent as a bearer token; empty for unauthenticated calls. It is never sent to a URL from a platform's
	// response.
	Token   string
	Header  http.Header
	Body    Body
	Timeout time.Duration
	// IdempotencyKey is as in transport.Call.
	IdempotencyKey string
}

// Body is a request body. The zero value sends none.
type Body struct {
	// Content yields Length bytes of the media type Type.
	Content io.Reader
	Length  int64
	Type    string

	err error
}

// Fields returns a form body (application/x-www-form-urlencoded).
func Fields(fields url.Values) Body {
	content := fields.Encode()
	return Body{Content: strings.NewReader(content), Length: int64(len(content)), Type: "application/x-www-form-urlencoded"}
}

// JSON returns a JSON body with the given media type. The characters <, > and & are not escaped.
func JSON(mediaType string, v any) Body {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return Body{Content: &content, Length: int64(content.Len()), Type: mediaType, err: err}
}

// errBadBaseURL replaces net/http's error, which contains the URL.
var errBadBaseURL = errors.New("the configured address is not a URL")

// Do makes the call once. Errors are *transport.Error.
func (c *Client) Do(ctx context.Context, call Call) (*transport.Response, error) {
	if call.Body.err != nil {
		return nil, &transport.Error{Err: call.Body.err}
	}
	where := resolvedAddress{address: c.BaseURL + call.Path, named: c.Public}
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
	return c.Transport.Do(ctx, transport.Call{
		Platform: c.Platform, Action: call.Action, Timeout: call.Timeout, IdempotencyKey: call.IdempotencyKey, Named: where.named,
	}, req)
}

// NotSent reports whether a call failed before any part of it can have reached the platform.
func NotSent(err error) bool {
	failure, ok := errors.AsType[*transport.Error](err)
	return ok && !failure.Sent
}

// Address returns the configured address, or otherwise if it is empty, without a trailing slash.
func Address(configured, otherwise string) string {
	return strings.TrimRight(cmp.Or(configured, otherwise), "/")
}

// Wait waits for the duration of pause. If the context ends first, it returns the context's cause.
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
