// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/apiserver/wire"
)

// Answer is what an operation answers at another door than HTTP.
type Answer struct {
	// Status is the one that HTTP has for it; an error has 400 or more.
	Status int
	// Body is the envelope: the same bytes that HTTP answers.
	Body []byte
	// Waits says that the post which was to be published is a draft, until a person
	// publishes it.
	Waits bool
}

// Call performs an operation, by its operationId, for a caller that was admitted. Its
// arguments are one JSON object with the fields of body, query and path by their names;
// none, or null, is an empty one. They are part of a body that ReadBody has charged. The key is
// an Idempotency-Key, or empty.
func (h *Handler) Call(ctx context.Context, id string, caller bridge.Caller, arguments []byte, key string) Answer {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.id == id })
	if i < 0 {
		return Refusal(ctx, fmt.Errorf("there is no operation %q", id))
	}
	of, c := &operations[i], &call{caller: caller, key: key}
	if err := c.take(h, of, arguments); err != nil {
		return Refusal(ctx, err)
	}
	out, done, err := h.perform(ctx, of, c)
	defer done()
	if err != nil {
		return Refusal(ctx, err)
	}
	return Answer{Status: of.status, Body: bytes.Clone(out.body), Waits: out.made.waits}
}

// Refusal is the answer to a caller for whom nothing was done.
func Refusal(ctx context.Context, err error) Answer {
	f := failureOf(ctx, err)
	return Answer{Status: f.status, Body: wire.AppendError(nil, f.code, f.message)}
}

// take reads the arguments of an operation.
func (c *call) take(h *Handler, of *operation, arguments []byte) error {
	if of.creates {
		if err := h.service.RequireSubscription(c.caller); err != nil {
			return err
		}
		if c.key != "" {
			if err := checkKey(c.key); err != nil {
				return err
			}
		}
	}
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = []byte("{}")
	}
	var err error
	if c.body, err = strictjson.Parse(arguments); err != nil {
		return invalid("%s", err)
	}
	switch {
	case of.creates:
		return nil // the operation itself reads its body
	case of.lists:
		c.query = url.Values{}
		for _, name := range of.words {
			if word := c.body.Optional(name).OrNull(); word.Given() {
				c.query.Set(name, word.Text(0, len(arguments)))
			}
		}
		for _, name := range of.numbers {
			if number := c.body.Optional(name).OrNull(); number.Given() {
				c.query.Set(name, number.Literal())
			}
		}
	default:
		c.id = c.body.Field("id").Text(1, len(arguments))
	}
	if problems, more := c.body.Problems(); len(problems) > 0 {
		return invalid("%s", bridge.JoinFirst(problems, more))
	}
	return nil
}
