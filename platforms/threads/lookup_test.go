// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

// post renders a listed post.
func post(t *testing.T, id, text string, at time.Time, fields ...string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	fields = append([]string{
		`"id":"` + id + `"`, `"text":` + string(quoted), `"timestamp":"` + at.Format("2006-01-02T15:04:05-0700") + `"`,
		`"permalink":"https://threads.example/` + id + `"`,
	}, fields...)
	return "{" + strings.Join(fields, ",") + "}"
}

func list(posts ...string) http.HandlerFunc {
	return says(200, `{"data":[`+strings.Join(posts, ",")+`]}`)
}

// TestLookup tests which listed posts may be a job's post. The lookup of containers is shared with Instagram and tested
// there.
func TestLookup(t *testing.T) {
	found := platforms.LookupResult{Matches: 1, ExternalID: "1", ExternalURL: "https://threads.example/1", PostedAt: noon}
	proof := platforms.LookupResult{Proof: true}
	text := post(t, "1", "hello", noon, `"media_type":"TEXT_POST"`, `"is_reply":false`)
	tests := map[string]struct {
		reason  string
		answers answers
		without bool
		want    platforms.LookupResult
	}{
		"published": {
			"the container reports the publication, and the list the id",
			answers{containerState("PUBLISHED"), list(post(t, "2", "other", noon.Add(time.Minute)), text)},
			false, found,
		},
		"finished":     {"a finished container is not published yet", answers{containerState("FINISHED")}, false, proof},
		"error":        {"a failed container is never published", answers{containerState("ERROR")}, false, proof},
		"expired":      {"an expired container proves that it was not published", answers{containerState("EXPIRED")}, false, proof},
		"no container": {"a list that does not show it is not proof", answers{list()}, true, platforms.LookupResult{}},
		"reply": {
			"a job never publishes replies",
			answers{list(post(t, "1", "hello", noon, `"is_reply":true`))},
			true,
			platforms.LookupResult{},
		},
		"picture": {
			"a post of another kind is another post",
			answers{list(post(t, "1", "hello", noon, `"media_type":"IMAGE"`))},
			true,
			platforms.LookupResult{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newThreads(t, inTurn(tc.answers))
			job := jobFor("hello")
			if tc.without {
				job.Checkpoint = ""
			}
			got, err := p.Lookup(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			listed := server.Requests()[len(tc.answers)-1]
			if want := strconv.FormatInt(noon.Unix()-1, 10); strings.HasSuffix(listed.Path, "/threads") && listed.Query.Get("since") != want {
				t.Errorf("requested %+v", listed)
			}
		})
	}
}
