// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandboxtest is a client for a sandbox's control API. Tests use it to create accounts, inject faults and read
// the published posts. It uses only HTTP, so it also works with a sandbox in another process; Start serves one in this
// process.
package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Client is a client for a sandbox.
type Client struct {
	// URL is the sandbox's address without a trailing slash.
	URL string
}

// Account is an account with its current tokens.
type Account struct {
	ID           string `json:"id"`
	Username     string `json:"username"`
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	// Scopes are the scopes that the tokens were granted.
	Scopes []string `json:"scopes"`
	// ExpiresAt is the time at which the access token expires, or zero if it does not.
	ExpiresAt time.Time `json:"-"`
}

// UnmarshalJSON decodes an account. An empty expiry means that the token does not expire.
func (a *Account) UnmarshalJSON(data []byte) error {
	type plain Account
	wire := struct {
		*plain
		ExpiresAt string `json:"expires_at"`
	}{plain: (*plain)(a)}
	if err := json.Unmarshal(data, &wire); err != nil || wire.ExpiresAt == "" {
		return err
	}
	var err error
	a.ExpiresAt, err = time.Parse(time.RFC3339, wire.ExpiresAt)
	return err
}

// Post is a published post.
type Post struct {
	ID        string `json:"id"`
	Platform  string `json:"platform"`
	AccountID string `json:"account_id"`
	Text      string `json:"text"`
	Title     string `json:"title"`
	URL       string `json:"url"`
	InReplyTo string `json:"in_reply_to"`
	// Draft is true for a draft in the inbox of the account's app.
	Draft     bool      `json:"draft"`
	CreatedAt time.Time `json:"created_at"`
	// Media are the files of the post, in order.
	Media []Media `json:"media"`
}

// Media is a file as the platform received it.
type Media struct {
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	MIMEType string `json:"mime_type"`
	// AltText is the file's description for people who cannot see it.
	AltText string `json:"alt_text"`
}

// Fault is a fault to inject, with the fields of the control API.
type Fault struct {
	Platform  string `json:"platform"`
	Operation string `json:"operation"`
	Kind      string `json:"kind"`
	Times     int    `json:"times"`
	Account   string `json:"account,omitempty"`
	Status    int    `json:"status,omitempty"`
	Percent   int    `json:"percent,omitempty"`
	Seed      uint64 `json:"seed,omitempty"`
	Refusal   string `json:"refusal,omitempty"`
	// Body is any JSON value; a string is sent as text.
	Body        any               `json:"body,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	DelayMS     int               `json:"delay_ms,omitempty"`
	RetryAfterS int               `json:"retry_after_s,omitempty"`
}

// Account creates an account, or changes the settings of an existing one.
func (c Client) Account(ctx context.Context, platform, id string, settings map[string]any) (Account, error) {
	if settings == nil {
		settings = map[string]any{}
	}
	var out struct{ Data Account }
	err := c.call(ctx, http.MethodPut, "/_control/accounts/"+platform+"/"+id, settings, &out)
	return out.Data, err
}

// Posts lists an account's published posts, in order of creation.
func (c Client) Posts(ctx context.Context, platform, account string) ([]Post, error) {
	query := url.Values{"platform": {platform}, "account": {account}}
	var out struct{ Data []Post }
	err := c.call(ctx, http.MethodGet, "/_control/posts?"+query.Encode(), nil, &out)
	return out.Data, err
}

// Calls returns the number of requests received, by operation.
func (c Client) Calls(ctx context.Context, platform string) (map[string]int, error) {
	counted, err := c.counts(ctx)
	counts := map[string]int{}
	for _, row := range counted {
		if row.Platform == platform {
			counts[row.Operation] += row.Count
		}
	}
	return counts, err
}

// Peak returns the largest number of concurrent requests for an operation.
func (c Client) Peak(ctx context.Context, platform, operation string) (peak int, err error) {
	counted, err := c.counts(ctx)
	for _, row := range counted {
		if row.Platform == platform && row.Operation == operation {
			peak = max(peak, row.Peak)
		}
	}
	return peak, err
}

type count struct {
	Platform, Operation string
	Count, Peak         int
}

func (c Client) counts(ctx context.Context) ([]count, error) {
	var out struct{ Data []count }
	err := c.call(ctx, http.MethodGet, "/_control/calls", nil, &out)
	return out.Data, err
}

// Fault injects a fault.
func (c Client) Fault(ctx context.Context, f Fault) error {
	return c.call(ctx, http.MethodPost, "/_control/faults", f, nil)
}

// Faults returns the active faults. Times is how many more times each occurs.
func (c Client) Faults(ctx context.Context) ([]Fault, error) {
	var out struct{ Data []Fault }
	err := c.call(ctx, http.MethodGet, "/_control/faults", nil, &out)
	return out.Data, err
}

// ClearFaults removes all faults.
func (c Client) ClearFaults(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/_control/faults", nil, nil)
}

func (c Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}
