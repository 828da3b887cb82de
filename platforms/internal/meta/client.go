// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/internal/multipartbody"
)

// Client calls one graph.
type Client struct {
	// Platform labels the metrics.
	Platform string
	// BaseURL is the graph's address, without a slash at the end.
	BaseURL string
	// Transport is the way out.
	Transport *transport.Client
}

// Call is one request.
type Call struct {
	// Action labels the metrics, as in transport.Call.
	Action string
	// Path begins with a slash. It may bring a query.
	Path string
	// Token is sent in the header; empty for a call that names it otherwise.
	Token string
	// Form makes the call a POST with this body; nil makes it a GET.
	Form url.Values
	// Upload makes the call a POST with this body instead.
	Upload *multipartbody.Form
	// Timeout bounds the call.
	Timeout time.Duration
}

// Do makes the call once. Errors are *transport.Error.
func (c *Client) Do(ctx context.Context, call Call) (*transport.Response, error) {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	switch {
	case call.Upload != nil:
		method, body = http.MethodPost, call.Upload
	case call.Form != nil:
		method, body = http.MethodPost, strings.NewReader(call.Form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, c.BaseURL+call.Path, body)
	if err != nil {
		return nil, &transport.Error{Err: err}
	}
	switch {
	case call.Upload != nil:
		req.ContentLength = call.Upload.Len()
		req.Header.Set("Content-Type", call.Upload.ContentType())
	case call.Form != nil:
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if call.Token != "" {
		req.Header.Set("Authorization", "Bearer "+call.Token)
	}
	return c.Transport.Do(ctx, transport.Call{Platform: c.Platform, Action: call.Action, Timeout: call.Timeout}, req)
}
