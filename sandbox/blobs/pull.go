// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// pullWithin is how long the fetching of a file may take.
const pullWithin = 2 * time.Minute

// PullError says that a file cannot be fetched from where a client said it is.
type PullError struct {
	// URL is what was asked for, without its query, which may carry authority.
	URL string
	// Status is what was answered; zero if nothing was.
	Status int
	Err    error
}

// Error says what went wrong.
func (e *PullError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answers %d", e.URL, e.Status)
	}
	return fmt.Sprintf("%s cannot be fetched: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }

// Redirects says whether a platform follows them.
type Redirects bool

// What platforms do about redirects. To one that does not follow, they are like any other answer that is not the file.
const (
	Follow Redirects = true
	Refuse Redirects = false
)

// Pull fetches a file, as platforms do that are told an address instead of being sent bytes. The error is a *PullError if the
// address is at fault, and ErrTooLarge if it holds more than limit bytes.
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
