// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// pullWithin is the timeout for fetching a file.
const pullWithin = 2 * time.Minute

// PullError is returned if a file cannot be fetched from the client's address.
type PullError struct {
	// URL is the requested address without its query, which may contain credentials.
	URL string
	// Status is the response status; zero without a response.
	Status int
	Err    error
}

// Error returns a message with the address and the cause.
func (e *PullError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answers %d", e.URL, e.Status)
	}
	return fmt.Sprintf("%s cannot be fetched: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }

// Redirects is a platform's redirect policy.
type Redirects bool

// The redirect policies. A platform with Refuse treats a redirect like any other failed response.
const (
	Follow Redirects = true
	Refuse Redirects = false
)

// Pull fetches a file from an address, like a platform. It returns a *PullError if the address is at fault, and ErrTooLarge for a file over
// limit bytes.
func (s *Store) Pull(ctx context.Context, url string, limit int64, follow Redirects) (Blob, error) {
	client := new(http.Client)
	if follow == Refuse {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	ctx, cancel := context.WithTimeout(ctx, pullWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Blob{}, &PullError{URL: "the address", Err: err}
	}
	shown := request.URL.Scheme + "://" + request.URL.Host + request.URL.EscapedPath()
	response, err := client.Do(request)
	if err != nil {
		return Blob{}, &PullError{URL: shown, Err: err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Blob{}, &PullError{URL: shown, Status: response.StatusCode}
	}
	return s.Receive(response.Body, limit)
}
