// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pager reads long lists from the Kubernetes API by pages that are bounded by
// bytes. A list is asked for by a number of objects, and objects differ: 2,000 posts are
// some megabytes, or half a gigabyte.
//
// The pager of client-go has pages of a fixed number of objects.
package pager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// first is how many objects the first page of a list may have, and all of them
	// where nothing tells how large they are.
	first = 50
	// most bounds the objects of a page. Larger ones save no time.
	most = 2000
	// aim is how many bytes of JSON the next page should take, given the last: requests
	// are few, and what is decoded from it is some 15 MiB at most.
	aim = 4 << 20
	// Bound is how many bytes of JSON are read of a page. One that has more is asked for
	// again with fewer objects. A page of one object is read whole.
	Bound = 8 << 20
	// step is by how much pages grow and shrink at most from one to the next. After one
	// that was too large they grow by half a page at most, until the end of the list.
	step = 4
)

// errTooLarge says that a page has more bytes than Bound.
var errTooLarge = errors.New("the page is larger than is read at once")

// Page is what to ask the Kubernetes API for.
type Page struct {
	// Limit is how many objects to return at most, and Continue where to go on.
	Limit    int64
	Continue string
}

// EachPage reads a list to its end. read asks for one page, with this context, by a client
// whose transport is wrapped by Count, and returns where the next one begins; "" after the
// last. It takes what it has read in only if it returns no error: a page may be asked for
// again with fewer objects.
func EachPage(ctx context.Context, read func(ctx context.Context, page Page) (next string, err error)) error {
	page, ceiling := Page{Limit: first}, int64(most)
	for {
		counted := &count{whole: page.Limit == 1}
		next, err := read(context.WithValue(ctx, key{}, counted), page)
		switch {
		case errors.Is(err, errTooLarge) && page.Limit > 1:
			page.Limit = max(page.Limit/step, 1)
			ceiling = page.Limit
			continue
		case err != nil:
			return err
		case next == "":
			return nil
		}
		ceiling = min(ceiling+(ceiling+1)/2, most)
		page = Page{Limit: min(after(page.Limit, counted.bytes), ceiling), Continue: next}
	}
}

// after returns how many objects the next page may have, after one of limit objects that
// took so many bytes; 0 bytes if that is not known.
func after(limit, bytes int64) int64 {
	if bytes == 0 {
		return limit
	}
	next := limit * aim / bytes
	return min(max(next, limit/step, 1), limit*step, most)
}

// key finds the count of a page in a context.
type key struct{}

// count is what is known of the page that is being read.
type count struct {
	// whole says that it is read whatever its size.
	whole bool
	bytes int64
}

// WrapTransport wraps the transport of a client that Each reads with. It reads the pages of Each
// up to Bound, and leaves all else alone.
func WrapTransport(next http.RoundTripper) http.RoundTripper { return countingTransport{next} }

type countingTransport struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go find the transport below.
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
		body = io.LimitReader(body, Bound+1)
	}
	var read bytes.Buffer
	page.bytes, err = read.ReadFrom(body)
	err = errors.Join(err, resp.Body.Close())
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read a page of a list: %w", err)
	case !page.whole && page.bytes > Bound:
		return nil, errTooLarge
	}
	resp.Body = io.NopCloser(&read)
	return resp, nil
}
