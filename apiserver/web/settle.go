// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/platforms"
)

// The answers that the form offers for a target with an unknown outcome.
const (
	verdictCandidate = "candidate"
	verdictPosted    = "posted"
	verdictUnnamed   = "unnamed"
	verdictNotSent   = "not-sent"
	verdictRelist    = "look-again"
)

func (s *Site) settle(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	target, err := strconv.Atoi(v.PostForm.Get("target"))
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say which account it is about"}
	}
	id := v.PathValue("id")
	verdict := bridge.Verdict{Posted: true}
	switch v.PostForm.Get("verdict") {
	case verdictCandidate:
		verdict.ExternalID = v.PostForm.Get("candidate")
	case verdictPosted:
		if verdict, err = s.found(v, id, target, v.PostForm.Get("found")); err != nil {
			return err
		}
	case verdictUnnamed:
		verdict.Unnamed = true
	case verdictNotSent:
		verdict.Posted = false
	case verdictRelist:
		if err := s.Service.ListCandidates(v.Context(), v.caller, id); err != nil {
			return err
		}
		v.redirect(w, "posts/"+id, "looking")
		return nil
	default: // an answer that allows sending again must be explicit
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say whether the post was published; reload the page"}
	}
	if err := s.Service.Settle(v.Context(), v.caller, id, target, verdict); err != nil {
		return err
	}
	v.redirect(w, "posts/"+id, "settled")
	return nil
}

// found returns the verdict for a post that a user identified by its address or id.
func (s *Site) found(v *visit, post string, target int, entered string) (none bridge.Verdict, _ error) {
	of, err := s.Service.ReadPost(v.Context(), v.caller, post)
	if err != nil {
		return none, err
	}
	if target < 0 || target >= len(of.Spec.Targets) {
		return none, &bridge.Error{Code: bridge.CodeValidation, Message: "the post does not go to the account that the form names; reload the page"}
	}
	platform := s.platformOf(v, of, target)
	reader := s.reader(platform)
	if reader == nil {
		return bridge.Verdict{Posted: true, ExternalID: strings.TrimSpace(entered)}, nil
	}
	account := platforms.Account{}
	if connection := s.account(v, of.Spec.Targets[target].ConnectionRef.Name); connection != nil {
		account = platforms.Account{ID: connection.Spec.AccountID, Username: connection.Status.Username}
	}
	name, ok := reader.ParsePost(account, entered)
	if !ok {
		return none, &bridge.Error{Code: bridge.CodeValidation, Message: "your input does not identify a post on " + platform.Title() + ". Enter " + reader.PostHint()}
	}
	verdict := bridge.Verdict{Posted: true, ExternalID: name.ID}
	if name.ID == "" {
		verdict.ExternalURL = name.URL // the manager looks up its id
	}
	return verdict, nil
}

// reader returns the parser for the addresses and ids of a platform's posts, or nil if this installation has none.
func (s *Site) reader(p v1alpha1.Platform) platforms.PostParser {
	if s.PostReader == nil {
		return nil
	}
	return s.PostReader(p)
}
