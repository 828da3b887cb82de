// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// parts responds like a graph that numbers its containers and refuses the first carousels. form returns the current
// request's form.
func parts(refusals int, form func() url.Values, made *[]string) http.HandlerFunc {
	created := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			holds("FINISHED")(w, r)
			return
		}
		children := form().Get("children")
		if children != "" {
			*made = append(*made, "around "+children)
			if refusals > 0 {
				refusals--
				problem(400, 100, 4279004, false)(w, r)
				return
			}
		}
		created++
		if children == "" {
			*made = append(*made, strconv.Itoa(created))
		}
		says(200, fmt.Sprintf(`{"id":"%d"}`, created))(w, r)
	}
}

// TestPartsAreMadeAgain makes Threads refuse a carousel because its parts are invalid or have expired. They are created
// again, and the post does not fail.
func TestPartsAreMadeAgain(t *testing.T) {
	video := platforms.File{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: 1, Bytes: elsewhere{}}
	tests := map[string]struct {
		reason, checkpoint string
		refusals           int
		want               []string
		id                 string
		class              platforms.Class
	}{
		"once": {"new parts go into the next carousel", "", 1, []string{"1", "2", "around 1,2", "3", "4", "around 3,4"}, "5", ""},
		"parts of an earlier preparation": {
			"those that were noted are not used once more", "items:8,9", 1, []string{"around 8,9", "1", "2", "around 1,2"}, "3", "",
		},
		"again and again": {
			"it is tried again later, and not for ever now", "", 9, []string{"1", "2", "around 1,2", "3", "4", "around 3,4"},
			"", platforms.ClassTransient,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var made []string
			var server *recorder.Server
			last := func() url.Values { seen := server.Requests(); return seen[len(seen)-1].Form }
			var p *Platform
			p, server = newThreads(t, parts(tc.refusals, last, &made))
			job := jobFor("hello")
			job.Content.Category, job.Content.Media, job.Checkpoint = v1alpha1.CategoryVideo, []platforms.File{video, video}, tc.checkpoint
			id, err := p.Prepare(t.Context(), job)
			if id != tc.id || (err == nil) != (tc.class == "") || err != nil && err.Class != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, id, err)
			}
			if diff := cmp.Diff(tc.want, made); diff != "" {
				t.Errorf("%s: containers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
