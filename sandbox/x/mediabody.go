// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/herald-social/herald/sandbox/faults"
)

// maxChunkBody is the longest request with media that X reads, in bytes, all around the media included.
const maxChunkBody = 8 << 20

// complaint is the answer to a body with which something is wrong; nil when nothing is.
func complaint(bad []string) *problem {
	if len(bad) == 0 {
		return nil
	}
	with := invalidBody(bad...)
	return &with
}

// readJSON reads a JSON body that a rule allows and that has the required fields.
func readJSON(r *faults.Request, allowed rule, required ...string) (any, *problem) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, complaint([]string{"Requests with bodies must have content-type of application/json."})
	}
	content, with := readAll(r)
	if with != nil {
		return nil, with
	}
	body, err := decodeBody(content)
	if err != nil {
		return nil, complaint([]string{"The body is not valid JSON: " + err.Error()})
	}
	var bad []string
	allowed("$", body, &bad)
	if _, isObject := body.(map[string]any); isObject {
		for _, name := range required {
			if !has(body, name) {
				complainf(&bad, "$."+name, "is missing but it is required")
			}
		}
	}
	return body, complaint(bad)
}

// readAll returns the body of a request, whether or not the gate has left it to be read.
func readAll(r *faults.Request) ([]byte, *problem) {
	if len(r.Content) > 0 {
		return r.Content, nil
	}
	content, err := io.ReadAll(io.LimitReader(r.Body, maxChunkBody+1))
	switch {
	case err != nil:
		return nil, complaint([]string{"The body did not arrive whole."})
	case len(content) > maxChunkBody:
		with := problemFor(http.StatusRequestEntityTooLarge)
		return nil, &with
	}
	return content, nil
}

func isMultipart(r *faults.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "multipart/form-data"
}

// readParts reads a multipart body of the named parts and no others, each at most once.
func readParts(r *faults.Request, allowed ...string) (map[string][]byte, *problem) {
	if !isMultipart(r) {
		return nil, complaint([]string{"Requests with bodies must have content-type of multipart/form-data."})
	}
	limited := &io.LimitedReader{R: r.Body, N: maxChunkBody + 1}
	whole := *r.Request
	whole.Body = io.NopCloser(limited)
	reader, err := whole.MultipartReader()
	if err != nil {
		return nil, complaint([]string{"The body is not valid multipart: " + err.Error()})
	}
	parts, err := collect(reader)
	var bad []string
	switch {
	case limited.N <= 0:
		with := problemFor(http.StatusRequestEntityTooLarge)
		return nil, &with
	case err != nil:
		return nil, complaint([]string{"The body is not valid multipart: " + err.Error()})
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if !slices.Contains(allowed, name) {
			complainf(&bad, name, "is not defined in the schema and the schema does not allow additional properties")
		}
	}
	return parts, complaint(bad)
}

// errTwice says that a part came more than once.
var errTwice = errors.New("a part is there more than once")

func collect(reader *multipart.Reader) (map[string][]byte, error) {
	parts := map[string][]byte{}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		if _, twice := parts[part.FormName()]; twice {
			return nil, errTwice
		}
		if parts[part.FormName()], err = io.ReadAll(part); err != nil {
			return nil, err
		}
	}
}
