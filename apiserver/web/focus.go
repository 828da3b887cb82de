// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// The fields for the two coordinates of a file's focal point; see fileFields.
const (
	kindFocusX = "focus-x"
	kindFocusY = "focus-y"
)

// focalPoint returns the entered focal point, or nil if both fields are empty. A single empty field means the center.
func focalPoint(x, y string) *v1alpha1.FocalPoint {
	if x == "" && y == "" {
		return nil
	}
	const edge = 100
	percent := func(entered string) int32 {
		n, _ := strconv.Atoi(strings.TrimSpace(entered)) // browsers send whole numbers or nothing
		return int32(min(max(n, -edge), edge))
	}
	return &v1alpha1.FocalPoint{X: percent(x), Y: percent(y)}
}

// coordinates returns a focal point as entered.
func coordinates(of *v1alpha1.FocalPoint) (x, y string) {
	if of == nil {
		return "", ""
	}
	return strconv.Itoa(int(of.X)), strconv.Itoa(int(of.Y))
}

// hasFocalPoints reports whether the form has fields for focal points: the team has an account on Mastodon, or the post
// has focal points. If so, every file has the fields, because a list's fields are in the order of its files.
func (s *Site) hasFocalPoints(v *visit, c *composer) bool {
	return slices.ContainsFunc(s.usable(v), func(a *v1alpha1.Connection) bool { return a.Spec.Platform == v1alpha1.PlatformMastodon }) ||
		c.writing != nil && c.hasFocus()
}

func (w *writing) hasFocus() bool {
	for name, entered := range w.perFile {
		if (strings.HasPrefix(name, kindFocusX) || strings.HasPrefix(name, kindFocusY)) && strings.Join(entered, "") != "" {
			return true
		}
	}
	return slices.ContainsFunc(w.cards, func(c v1alpha1.TreeCard) bool {
		return slices.ContainsFunc(c.MediaRefs, func(ref v1alpha1.MediaReference) bool { return ref.FocalPoint != nil })
	})
}

// focusFields are the fields for a file's focal point. For a file that has not been uploaded yet, list and file are
// empty, and the page's script sets the names.
func focusFields(list string, of v1alpha1.MediaReference, file string) g.Node {
	x, y := coordinates(of.FocalPoint)
	field := func(kind, label, value string) g.Node {
		return h.Label(h.Class("alt"), g.Text(label), h.Input(h.Type("number"), g.If(list != "", h.Name(fieldName(kind, list, of.Name))), h.Data("of", kind), h.Aria("label", strings.TrimSpace(label+" of "+file)),
			h.Min("-100"), h.Max("100"), h.Step("1"), h.Placeholder("0"), h.Value(value)))
	}
	return h.Details(g.If(of.FocalPoint != nil, g.Attr("open")), h.Summary(g.Text("Focal point on Mastodon")),
		field(kindFocusX, "From -100, left, to 100, right", x), field(kindFocusY, "From -100, bottom, to 100, top", y))
}
