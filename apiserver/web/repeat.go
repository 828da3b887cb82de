// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"maps"
	"net/http"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/bridge"
)

// fieldRepeat is the form field that confirms a repeated post.
const fieldRepeat = "repeat"

// confirmRepeat asks for confirmation when a user repeats a recent post. They may have pressed Back, or have the form
// open in a second tab. The fields are submitted to action unchanged, including the idempotency key, so that submitting
// repeatedly publishes one post.
func (s *Site) confirmRepeat(w http.ResponseWriter, v *visit, repeated *bridge.RepeatedError, action string) {
	fields := g.Group{hidden(fieldRepeat, "yes")}
	for _, name := range slices.Sorted(maps.Keys(v.PostForm)) {
		for _, value := range v.PostForm[name] {
			fields = append(fields, hidden(name, value))
		}
	}
	s.render(w, v, http.StatusConflict, view{
		title: "You published this a moment ago", place: placePosts,
		content: []g.Node{h.Section(h.ID("repeated"), h.Class("card"),
			notice(caution, h.P(g.Text("You sent the same post to the same accounts on "), v.moment(repeated.At), g.Text(". Nothing more was published."))),
			h.P(h.Class("actions"), link(v.path("posts/"+repeated.ID), "Open that post", "primary")),
			form(action, "", fields, submit("Publish it again", "danger")),
		)},
	})
}
