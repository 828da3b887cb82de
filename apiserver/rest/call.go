// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/wire"
)

// Answer is the response of an operation that was called without HTTP.
type Answer struct {
	// Status is the HTTP status; an error has 400 or more.
	Status int
	// Body is the envelope, with the same bytes as the HTTP response.
	Body []byte
	// Waits is true if the post became a draft for a user's review.
	Waits bool
	// Ignored lists the unknown arguments, escaped and separated by commas; empty if there are none.
	Ignored string
}

// Call runs an operation, given by its operationId, for an authenticated caller. arguments is a JSON object with the
// fields of body, query and path; empty or null means no arguments. ReadBody has already charged for them as part of a
// body. keys are the request's Idempotency-Keys; more than one is an error.
func (h *Handler) Call(ctx context.Context, id string, caller bridge.Caller, arguments []byte, keys ...string) Answer {
	i := slices.IndexFunc(h.version.operations, func(o operation) bool { return o.id == id })
	if i < 0 {
		return Refusal(ctx, fmt.Errorf("there is no operation %q", id))
	}
	of, c := &h.version.operations[i], &call{caller: caller}
	if err := c.parseArguments(h, of, arguments, keys); err != nil {
		return c.refusal(ctx, err)
	}
	out, done, err := h.perform(ctx, of, c)
	defer done()
	if err != nil {
		return c.refusal(ctx, err)
	}
	return Answer{Status: of.status, Body: bytes.Clone(out.body), Waits: out.created.waits, Ignored: listed(c.ignored)}
}

// Refusal returns the Answer for an error.
func Refusal(ctx context.Context, err error) Answer {
	f := failureOf(ctx, err)
	return Answer{Status: f.status, Body: wire.AppendError(nil, f.code, f.message)}
}

func (c *call) refusal(ctx context.Context, err error) Answer {
	answer := Refusal(ctx, err)
	answer.Ignored = listed(c.ignored)
	return answer
}

func (c *call) parseArguments(h *Handler, of *operation, arguments []byte, keys []string) error {
	if of.creates || of.acts || of.edits {
		if err := h.service.RequireSubscription(c.caller); err != nil {
			return err
		}
	}
	if of.keyed() {
		c.parseKey(keys)
	}
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = []byte("{}")
	}
	if err := c.parse(arguments); err != nil {
		return err
	}
	switch {
	case of.creates:
		return nil // the operation parses its body
	case of.acts, of.edits:
		c.id = c.body.Field("id").Text(1, len(arguments))
		if of.edits {
			c.version = c.body.Field("version").Text(1, maxVersion)
		}
		c.wrong, c.moreWrong = c.body.Problems()
		return c.refused() // the operation parses the rest
	case of.lists:
		c.query = url.Values{}
		for _, name := range of.words {
			if word := c.body.Optional(name).OrNull(); word.IsSet() {
				c.query.Set(name, word.Text(0, len(arguments)))
			}
		}
		for _, name := range of.numbers {
			if number := c.body.Optional(name).OrNull(); number.IsSet() {
				c.query.Set(name, strconv.FormatInt(number.Nearest(), 10))
			}
		}
	default:
		c.id = c.body.Field("id").Text(1, len(arguments))
	}
	c.ignoredInBody()
	c.wrong, c.moreWrong = c.body.Problems()
	if of.lists {
		return nil // the parameters are parsed together
	}
	return c.refused()
}
