// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Instagram's bounds of width divided by height, for an installation without Instagram.
const portrait, landscape = 0.8, 1.91

// cropDialog is the dialog in which a user crops a picture to a shape that Instagram accepts. The page's script opens
// it.
func (s *Site) cropDialog() g.Node {
	limits, _ := s.Service.Capabilities(v1alpha1.PlatformInstagram)
	narrow, wide := fmt.Sprint(cmp.Or(limits.Images.MinAspect, portrait)), fmt.Sprint(cmp.Or(limits.Images.MaxAspect, landscape))
	slider := func(name, label string, from, to, value int) g.Node {
		return h.P(h.Class("field"), h.Label(h.For("crop-"+name), g.Text(label)),
			h.Input(h.Type("range"), h.ID("crop-"+name), h.Name(name), h.Min(strconv.Itoa(from)), h.Max(strconv.Itoa(to)), h.Step("any"), h.Value(strconv.Itoa(value))))
	}
	return h.Dialog(h.ID("crop"), h.Class("crop"), h.Data("script", s.assets.path("crop.js")), h.Aria("labelledby", "crop-title"),
		h.Form(h.Method("dialog"),
			h.H2(h.ID("crop-title"), g.Text("Crop the picture")),
			h.Canvas(h.Role("img"), h.Aria("label", "The picture, with the part that remains"), h.Data("min", narrow), h.Data("max", wide)),
			h.FieldSet(h.Class("kinds"), h.Legend(g.Text("Shape")),
				choice("shape", "0", "As Instagram takes it", true), choice("shape", narrow, "Portrait 4:5", false),
				choice("shape", "1", "Square", false), choice("shape", wide, "Landscape 1.91:1", false)),
			slider("size", "Size", 20, 100, 100), slider("x", "From left to right", 0, 100, 50), slider("y", "From top to bottom", 0, 100, 50),
			h.P(g.El("output")),
			h.Div(h.Class("actions"), h.Button(h.Class("button primary"), h.Value("crop"), g.Text("Crop")), h.Button(h.Class("button quiet"), h.Value(""), g.Text("Cancel")))))
}
