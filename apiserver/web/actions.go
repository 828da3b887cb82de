// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	g "maragu.dev/gomponents"

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
	back := localPath(v.PostForm.Get("back"), v.path(string(placeCalendar)))
	if back == "" {
		back = v.path("posts/" + id)
	}
	http.Redirect(w, v.Request, afterMove(back, id, from, *at), http.StatusSeeOther) //nolint:gosec // G710: localPath lets no other page through
	return nil
}

// The parameters of an address whose page shows that a post was moved.
const (
	paramSaid  = "said"
	paramMoved = "moved"
	paramWas   = "was"
	paramIs    = "is"
)

// afterMove adds the parameters about a moved post to an address on this site.
func afterMove(address, id string, was, is time.Time) string {
	u, _ := url.Parse(address) // it has already been parsed
	q := u.Query()
	q.Set(paramSaid, paramMoved)
	q.Set(paramMoved, id)
	q.Set(paramWas, was.UTC().Format(time.RFC3339Nano))
	q.Set(paramIs, is.UTC().Format(time.RFC3339Nano))
	u.RawQuery = q.Encode()
	return u.RequestURI()
}

// here returns the address of the visited page, without the notice about the last action.
func (v *visit) here() string {
	u, q := *v.URL, v.URL.Query()
	for _, param := range []string{paramSaid, paramMoved, paramWas, paramIs} {
		q.Del(param)
	}
	u.RawQuery = q.Encode()
	return u.RequestURI()
}

// undoMove offers to move a post back. It names the time, because anyone can make up such an address.
func (v *visit) undoMove() g.Node {
	q := v.URL.Query()
	was, err := time.Parse(time.RFC3339Nano, q.Get(paramWas))
	is, other := time.Parse(time.RFC3339Nano, q.Get(paramIs))
	id := q.Get(paramMoved)
	if err != nil || other != nil || id == "" || strings.ContainsAny(id, "/?#%") || !v.may.update || !was.After(v.now) {
		return nil
	}
	return form(v.path("posts/"+id+"/reschedule"), "",
		hidden("scheduled_at", was.UTC().Format(time.RFC3339Nano)), hidden("from", is.UTC().Format(time.RFC3339Nano)), hidden("back", v.here()),
		submit("Undo (move back to "+was.In(v.zone).Format(momentForm)+")", "small"))
}

// localPath returns an address from a form if it has the given path on this site, and "" otherwise.
func localPath(address, page string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Path != page {
		return ""
	}
	return u.RequestURI()
}
