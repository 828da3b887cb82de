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

	"github.com/herald-social/herald/apiserver/bodylimit"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/apiserver/person"
)

// maxForm is the greatest size of a form in bytes: the text of a post, for each of its accounts.
const maxForm = 2 << 20

// parseForm reads the form of a request into r.PostForm, whose room is taken from what the caller may have until done is called; done
// is never nil. A body of another type is left unread, as an empty form. Number and size of its fields are bounded: by maxForm, and by
// 10,000 fields (net/url). What was read is added to what the visit costs, whatever comes of it.
func (s *Site) parseForm(w http.ResponseWriter, r *http.Request, caller string) (done func(), err error) {
	r.PostForm = url.Values{}
	r.Form = r.PostForm // or package http would read the body again
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return func() {}, nil //nolint:nilerr // what is no form has no fields
	}
	body, done, err := s.Bodies.Read(w, r, caller, maxForm)
	cost.From(r.Context()).Bytes(len(body))
	if err == nil {
		r.PostForm, err = url.ParseQuery(string(body))
		r.Form = r.PostForm
	}
	switch {
	case errors.Is(err, bodylimit.ErrFull):
		w.Header().Set("Retry-After", bodylimit.RetryAfter)
		return done, &bridge.Error{Code: bridge.CodeRateLimited, Message: "too much is being sent at this moment; send the form again in a second"}
	case err != nil:
		return done, &bridge.Error{Code: bridge.CodeValidation, Message: "the form did not arrive in full, or has more than 2 MiB; shorten the texts and send it again"}
	}
	return done, nil
}

// personForm is parseForm for a form that a person sends for no team. Such forms have a limit of the size of a team's, which is the
// person's own; it is charged for what was read.
func (s *Site) personForm(w http.ResponseWriter, r *http.Request, who person.Person) (done func(), err error) {
	own := shareOf(who)
	if err := s.limitPerson(w, own, "you send too many forms at once"); err != nil {
		return func() {}, err
	}
	ctx, spent := cost.With(r.Context())
	metered := r.WithContext(ctx)
	done, err = s.parseForm(w, metered, own)
	r.PostForm, r.Form = metered.PostForm, metered.Form
	s.Teams.Charge(own, spent.Requests(), http.Header{})
	return done, err
}

// limitPerson counts what a person asks for by a limit of their own. Its error says what there is too much of, and when to come again.
func (s *Site) limitPerson(w http.ResponseWriter, own, tooMuch string) error {
	allowed, wait := s.Teams.Allow(own, http.Header{}) // pages have no use for what is left
	if allowed {
		return nil
	}
	after := strconv.Itoa(max(int(math.Ceil(wait.Seconds())), 1))
	w.Header().Set("Retry-After", after)
	return &bridge.Error{Code: bridge.CodeRateLimited, Message: tooMuch + "; try again in " + after + " seconds"}
}

// shareOf is what the forms are counted by that a person sends for no team. No namespace is called so: a person who is called like one
// takes nothing of its team's room.
func shareOf(who person.Person) string { return "person\x00" + who.Name }

// releaseForm gives back the room of a form.
func (v *visit) releaseForm() {
	if v.done != nil {
		v.done()
	}
}
