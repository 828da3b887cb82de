// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// firstPage is the number of objects on the first page of a list, and on all pages if their size is unknown.
	firstPage = 50
	// maxPageObjects limits the objects per page. Larger pages save no time.
	maxPageObjects = 2000
	// pageAim is the target size of a page in bytes of JSON. The number of objects is chosen according to the size of the
	// last page. This way, few requests are needed, and the decoded objects take about 15 MiB at most.
	pageAim = 4 << 20
	// MaxPageBytes is the maximum size of a page in bytes of JSON. A larger page is requested again with fewer objects. A
	// page with a single object is always read completely.
	MaxPageBytes = 8 << 20
	// pageStep is the largest factor between the sizes of consecutive pages. After a page that was too large, each page
	// grows by at most half, until the end of the list.
	pageStep = 4
)

var errTooLarge = errors.New("the page exceeds the maximum size")

// Page holds the parameters of a request to the Kubernetes API.
type Page struct {
	// Limit is the maximum number of objects, and Continue is the token of the page.
	Limit    int64
	Continue string
}

// EachPage reads a list to its end, in pages limited by size in bytes. The API limits a page by the number of objects,
// as does client-go's pager, and objects vary in size: 2,000 posts may take a few megabytes or half a gigabyte.
//
// read requests one page, with the given context, through a client whose transport is wrapped by WrapTransport. It
// returns the token of the next page, or "" after the last. It must not use a page unless the request succeeded: a page
// may be requested again with fewer objects.
func EachPage(ctx context.Context, read func(ctx context.Context, page Page) (next string, err error)) error {
	page, ceiling := Page{Limit: firstPage}, int64(maxPageObjects)
	for {
		counted := &count{whole: page.Limit == 1}
		next, err := read(context.WithValue(ctx, key{}, counted), page)
		switch {
		case errors.Is(err, errTooLarge) && page.Limit > 1:
			page.Limit = max(page.Limit/pageStep, 1)
			ceiling = page.Limit
			continue
		case err != nil:
			return err
		case next == "":
			return nil
		}
		ceiling = min(ceiling+(ceiling+1)/2, maxPageObjects)
		page = Page{Limit: min(after(page.Limit, counted.bytes), ceiling), Continue: next}
	}
}

// after returns the number of objects for the next page, after a page of limit objects that took the given number of
// bytes, or 0 if that is unknown.
func after(limit, bytes int64) int64 {
	if bytes == 0 {
		return limit
	}
	next := limit * pageAim / bytes
	return min(max(next, limit/pageStep, 1), limit*pageStep, maxPageObjects)
}

type key struct{}

type count struct {
	whole bool
	bytes int64
}

// WrapTransport wraps the transport of the client that EachPage reads with. It reads those pages up to MaxPageBytes,
// and passes all other responses through unchanged.
func WrapTransport(next http.RoundTripper) http.RoundTripper { return countingTransport{next} }

type countingTransport struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go find the wrapped transport.
func (c countingTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper.
func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	page, ok := r.Context().Value(key{}).(*count)
	if err != nil || !ok || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body := io.Reader(resp.Body)
	if !page.whole {
		body = io.LimitReader(body, MaxPageBytes+1)
	}
	var read bytes.Buffer
	page.bytes, err = read.ReadFrom(body)
	err = errors.Join(err, resp.Body.Close())
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read a page of a list: %w", err)
	case !page.whole && page.bytes > MaxPageBytes:
		return nil, errTooLarge
	}
	resp.Body = io.NopCloser(&read)
	return resp, nil
}
