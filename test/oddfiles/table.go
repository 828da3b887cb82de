// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"fmt"
	"strings"
)

// titles are the display names of the platforms.
var titles = map[Platform]string{X: "X", Instagram: "Instagram", Threads: "Threads", TikTok: "TikTok", Facebook: "Facebook", YouTube: "YouTube"}

// Table returns the files as Markdown tables: images, and videos.
func Table() string {
	var b strings.Builder
	for _, videos := range []bool{false, true} {
		kind, on := "image", ImagePlatforms
		if videos {
			kind, on = "video", VideoPlatforms
		}
		var names []string
		for _, p := range on {
			names = append(names, titles[p])
		}
		fmt.Fprintf(&b, "\n| %s | source | sent to %s and %s |\n| --- | --- | --- |\n",
			kind, strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
		for _, row := range Rows() {
			if row.IsVideo() == videos {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.Name, row.Reason, row.Want.words(on))
			}
		}
	}
	return b.String() + "\n"
}

// words describes the outcomes on these platforms: first the most frequent one, then the exceptions.
func (w Want) words(on []Platform) string {
	if w.All.Kind == Refused {
		return w.All.String()
	}
	by := map[string][]string{}
	order := []string{w.All.String()}
	for _, p := range on {
		o := w.On(p).String()
		if by[o] == nil && o != order[0] {
			order = append(order, o)
		}
		by[o] = append(by[o], titles[p])
	}
	var parts []string
	for i, o := range order {
		switch {
		case i == 0 && len(by) == 1:
			parts = append(parts, o)
		case len(by[o]) > 0:
			parts = append(parts, strings.Join(by[o], ", ")+": "+o)
		}
	}
	return strings.Join(parts, "; ")
}
