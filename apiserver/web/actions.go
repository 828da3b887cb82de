// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/herald-social/herald/apiserver/bridge"
)

func (s *Site) cancel(w http.ResponseWriter, v *visit) error {
	id := v.PathValue("id")
	if err := s.Service.CancelPost(v.Context(), v.caller, id); err != nil {
		return err
	}
	v.redirect(w, "posts/"+id, "cancelled")
	return nil
}

func (s *Site) reschedule(w http.ResponseWriter, v *visit) error {
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	written.when = whenLater
	at, err := written.time()
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: err.Error()}
	}
	from, err := time.Parse(time.RFC3339Nano, v.PostForm.Get("from"))
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form lacks the post's previous time; reload the page"}
	}
	id := v.PathValue("id")
	if _, err := s.Service.Move(v.Context(), v.caller, id, from, *at); err != nil {
		return err
	}
	if back := localPath(v.PostForm.Get("back"), v.path("calendar")); back != "" {
		http.Redirect(w, v.Request, back, http.StatusSeeOther) //nolint:gosec // G710: localPath lets no other page through
		return nil
	}
	v.redirect(w, "posts/"+id, "moved")
	return nil
}

// localPath returns an address from a form if it has the given path on our site, and "" otherwise.
func localPath(address, page string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Path != page {
		return ""
	}
	return u.RequestURI()
}
