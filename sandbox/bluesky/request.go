// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"encoding/json"
	"mime"
	"net/url"
	"slices"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
)

// readJSON reads a body without checking its fields.
func readJSON(r *faults.Request, into any) error { return json.Unmarshal(r.Content, into) }

// decode reads the JSON body of a request. It rejects unknown fields, which the server ignores, unless the sandbox is
// lenient.
func (p *Platform) decode(r *faults.Request, into any) *problem {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return invalid("Wrong request encoding (Content-Type): " + media)
	}
	return p.parse(r.Content, into)
}

// parse reads JSON like decode.
func (p *Platform) parse(content []byte, into any) *problem {
	read := simulator.Decode
	if p.Lenient {
		read = json.Unmarshal
	}
	if err := read(content, into); err != nil {
		return invalid("Invalid input: " + err.Error())
	}
	return nil
}

// params returns the query parameters of a request. It rejects unknown ones, like decode.
func (p *Platform) params(r *faults.Request, known ...string) (url.Values, *problem) {
	query := r.URL.Query()
	for name, values := range query {
		switch {
		case !slices.Contains(known, name) && !p.Lenient:
			return nil, invalid("the parameter " + name + " has no effect, or is not simulated")
		case len(values) > 1:
			return nil, invalid("the parameter " + name + " occurs more than once")
		}
	}
	return query, nil
}
