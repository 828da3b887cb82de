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

// fieldRepeat is the field by which a person confirms that the same is published again.
const fieldRepeat = "repeat"

// confirmRepeat asks a person who is about to publish what they published a moment ago. They may have pressed Back, or have the form open in
// a second tab. The form stays as it was sent, with its key, so that it publishes one post however often it is sent from here, to action.
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
			notice(caution, h.P(g.Text("You sent the same to the same accounts on "), v.moment(repeated.At), g.Text(". Nothing more was published."))),
			h.P(h.Class("actions"), link(v.path("posts/"+repeated.ID), "Open that post", "primary")),
			form(action, "", fields, submit("Publish it again", "danger")),
		)},
	})
}
