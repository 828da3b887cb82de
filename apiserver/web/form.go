// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
)

// maxForm is the maximum size of a form, in bytes. It must hold a post's text for each account.
const maxForm = 2 << 20

// parseForm reads a request's form into r.PostForm. Its memory counts against the caller's share until done is called;
// done is never nil. A body of any other type is not read, and results in an empty form. A form can have up to maxForm
// bytes and 10,000 fields (net/url). The bytes read are charged to the request even after an error.
func (s *Site) parseForm(w http.ResponseWriter, r *http.Request, caller string) (done func(), err error) {
	r.PostForm = url.Values{}
	r.Form = r.PostForm // otherwise net/http would read the body again
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return func() {}, nil //nolint:nilerr // a body that is not a form has no fields
	}
	body, done, err := s.Bodies.Read(w, r, caller, maxForm)
	limits.MeterFrom(r.Context()).Bytes(len(body))
	if err == nil {
		r.PostForm, err = url.ParseQuery(string(body))
		r.Form = r.PostForm
	}
	switch {
	case errors.Is(err, limits.ErrBodiesFull):
		w.Header().Set("Retry-After", limits.BodyRetryAfter)
		return done, &bridge.Error{Code: bridge.CodeRateLimited, Message: "too much data is being sent at the moment; send the form again in a second"}
	case err != nil:
		return done, &bridge.Error{Code: bridge.CodeValidation, Message: "the form did not arrive in full, or is larger than 2 MiB; shorten the texts and send it again"}
	}
	return done, nil
}

// personForm is like parseForm, but for a form outside teams. Such forms count against the user's own limit, which is
// as high as a team's and is charged for the bytes read.
func (s *Site) personForm(w http.ResponseWriter, r *http.Request, who access.Person) (done func(), err error) {
	own := shareOf(who)
	if err := s.limitPerson(w, own, "you send too many forms at once"); err != nil {
		return func() {}, err
	}
	ctx, spent := limits.WithMeter(r.Context())
	metered := r.WithContext(ctx)
	done, err = s.parseForm(w, metered, own)
	r.PostForm, r.Form = metered.PostForm, metered.Form
	s.Teams.Charge(own, spent.Requests(), http.Header{})
	return done, err
}

// limitPerson applies a user's own rate limit. Its error contains tooMuch and the time to wait.
func (s *Site) limitPerson(w http.ResponseWriter, own, tooMuch string) error {
	allowed, wait := s.Teams.Allow(own, http.Header{}) // pages do not show the remaining requests
	if allowed {
		return nil
	}
	after := strconv.Itoa(max(int(math.Ceil(wait.Seconds())), 1))
	w.Header().Set("Retry-After", after)
	return &bridge.Error{Code: bridge.CodeRateLimited, Message: tooMuch + "; try again in " + after + " seconds"}
}

// shareOf returns the rate limit key for a user's forms outside teams. No namespace can have such a name, so a user
// who has a team's name does not use up the team's limit.
func shareOf(who access.Person) string { return "person\x00" + who.Name }

func (v *visit) releaseForm() {
	if v.done != nil {
		v.done()
	}
}
