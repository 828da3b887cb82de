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

// Answer is what an operation answers at another door than HTTP.
type Answer struct {
	// Status is the one that HTTP has for it; an error has 400 or more.
	Status int
	// Body is the envelope: the same bytes that HTTP answers.
	Body []byte
	// Waits says that the post which was to be published is a draft, until a person
	// publishes it.
	Waits bool
	// Ignored are the names of arguments that the operation does not have, escaped, with commas between them; empty if it has
	// all of them.
	Ignored string
}

// Call performs an operation, by its operationId, for a caller that was admitted. Its
// arguments are one JSON object with the fields of body, query and path by their names;
// none, or null, is an empty one. They are part of a body that ReadBody has charged. The keys are
// the Idempotency-Keys of the request, of which it may have one.
func (h *Handler) Call(ctx context.Context, id string, caller bridge.Caller, arguments []byte, keys ...string) Answer {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.id == id })
	if i < 0 {
		return Refusal(ctx, fmt.Errorf("there is no operation %q", id))
	}
	of, c := &operations[i], &call{caller: caller}
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

// Refusal is the answer to a caller for whom nothing was done.
func Refusal(ctx context.Context, err error) Answer {
	f := failureOf(ctx, err)
	return Answer{Status: f.status, Body: wire.AppendError(nil, f.code, f.message)}
}

func (c *call) refusal(ctx context.Context, err error) Answer {
	answer := Refusal(ctx, err)
	answer.Ignored = listed(c.ignored)
	return answer
}

// parseArguments reads the arguments of an operation.
func (c *call) parseArguments(h *Handler, of *operation, arguments []byte, keys []string) error {
	if of.creates {
		if err := h.service.RequireSubscription(c.caller); err != nil {
			return err
		}
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
		return nil // the operation itself reads its body
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
		return nil // its parameters are read together
	}
	return c.refused()
}
