// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/postindex"
)

// agendaSize is the number of posts per page of the agenda.
const agendaSize = 50

// agenda lists the posts by day, starting on a given day.
func (s *Site) agenda(v *visit, c *calendar) (g.Node, error) {
	q := c.search(v)
	q.From, q.SoonestFirst, q.Limit, q.Cursor = v.midnight(c.day), true, agendaSize, cursorIn(v.URL.Query())
	found, err := s.Service.FindPosts(v.Context(), v.caller, q)
	if err != nil {
		return nil, err
	}
	s.loadThumbnails(v, found.Posts)
	page := string(placeCalendar)
	if found.Total == 0 {
		if len(c.pairs()) > 0 {
			return s.noMatch(v, page, c.filters, c.params()...), nil
		}
		return empty("No posts", "There are no posts from "+c.day.Format(longDateForm)+" on.", g.If(v.may.compose(), v.linkToNewOn(c.day))), nil
	}
	var days g.Group
	for first := 0; first < len(found.Posts); {
		day := v.dateAt(found.Posts[first].DisplayAt)
		end := first + 1
		for end < len(found.Posts) && v.dateAt(found.Posts[end].DisplayAt).Equal(day) {
			end++
		}
		days = append(days, s.agendaDay(v, day, found.Posts[first:end]))
		first = end
	}
	return g.Group{
		h.P(h.Class("soft"), g.Text(position(&found)+", earliest first.")),
		days,
		v.pager(page, &found, "Earlier", "Later", append(c.pairs(), c.params()...)...),
	}, nil
}

func (s *Site) agendaDay(v *visit, day time.Time, posts []postindex.Summary) g.Node {
	name := dateIn(day, "fullday", "Monday, "+longDateForm)
	if day.Equal(v.today()) {
		name = g.Group{g.Text("Today, "), dateIn(day, "long", longDateForm)}
	}
	return h.Section(h.Class("agenda-day"),
		h.Header(h.Class("section"), h.H2(name), v.newOn(day)),
		h.Ul(h.Class("list"), g.Map(posts, func(p postindex.Summary) g.Node { return s.row(v, &p) })))
}

func (v *visit) linkToNewOn(day time.Time) g.Node {
	if v.isOver(day) {
		return nil
	}
	return link(v.path("posts/new")+"?day="+day.Format(dateForm), "New post", "primary")
}
