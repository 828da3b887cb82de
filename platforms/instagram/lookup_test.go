// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// post renders a listed post.
func post(t *testing.T, id, caption string, at time.Time, fields ...string) string {
	t.Helper()
	quoted, err := json.Marshal(caption)
	if err != nil {
		t.Fatal(err)
	}
	fields = append([]string{
		`"id":"` + id + `"`, `"caption":` + string(quoted), `"timestamp":"` + at.Format("2006-01-02T15:04:05-0700") + `"`,
		`"permalink":"https://instagram.example/` + id + `"`,
	}, fields...)
	return "{" + strings.Join(fields, ",") + "}"
}

func list(posts ...string) http.HandlerFunc {
	return says(200, `{"data":[`+strings.Join(posts, ",")+`]}`)
}

func TestLookup(t *testing.T) {
	later := noon.Add(time.Minute)
	fits := func(id string, at time.Time) platforms.LookupResult {
		return platforms.LookupResult{Matches: 1, ExternalID: id, ExternalURL: "https://instagram.example/" + id, PostedAt: at}
	}
	proof := platforms.LookupResult{Proof: true}
	image, album, video := `"media_type":"IMAGE"`, `"media_type":"CAROUSEL_ALBUM"`, `"media_type":"VIDEO"`
	one, two, reel := jobFor("hello", "", picture("a")), jobFor("hello", "", picture("a"), picture("b")), jobFor("hello", "", film("a"))
	bare := jobFor("", "", picture("a"))
	with := func(job platforms.Job) platforms.Job { job.Checkpoint = container; return job }
	tests := map[string]struct {
		reason  string
		job     platforms.Job
		answers answers
		taken   string
		want    platforms.LookupResult
		class   platforms.Class
	}{
		"published":                 {"the container reports the publication, and the list the id", with(one), answers{containerState("PUBLISHED"), list(post(t, "2", "other", later, image), post(t, "1", "hello", noon, image))}, "", fits("1", noon), ""},
		"published, no caption":     {"a picture needs no caption", with(bare), answers{containerState("PUBLISHED"), list(post(t, "2", "other", later, image), `{"id":"1","media_type":"IMAGE"}`)}, "", platforms.LookupResult{Matches: 1, ExternalID: "1"}, ""},
		"published, not listed":     {"a published container is never absent", with(one), answers{containerState("PUBLISHED"), list()}, "", platforms.LookupResult{}, platforms.ClassUnknown},
		"published, other listed":   {"other posts are not a match", with(one), answers{containerState("PUBLISHED"), list(post(t, "1", "hello!", noon))}, "", platforms.LookupResult{}, platforms.ClassUnknown},
		"finished":                  {"a finished container is not published yet", with(one), answers{containerState("FINISHED")}, "", proof, ""},
		"error":                     {"a failed container cannot be published", with(one), answers{containerState("ERROR")}, "", proof, ""},
		"expired":                   {"an expired container proves that it was not published", with(one), answers{containerState("EXPIRED")}, "", proof, ""},
		"in progress":               {"a container in progress is not proof", with(one), answers{containerState("IN_PROGRESS")}, "", platforms.LookupResult{}, platforms.ClassTransient},
		"odd state":                 {"an unknown state is not proof", with(one), answers{containerState("LATER")}, "", platforms.LookupResult{}, platforms.ClassUnknown},
		"container lost":            {"a missing response is not proof", with(one), answers{hangUp}, "", platforms.LookupResult{}, platforms.ClassTransient},
		"dead token":                {"a user must reconnect the account", with(one), answers{problem(400, 190, 0)}, "", platforms.LookupResult{}, platforms.ClassReconnect},
		"container deleted, listed": {"the list may contain the post", with(one), answers{problem(400, 100, 33), list(post(t, "1", "hello", noon))}, "", fits("1", noon), ""},
		"container deleted":         {"its absence from the list is not proof", with(one), answers{problem(400, 100, 33), list()}, "", platforms.LookupResult{}, ""},
		"no container":              {"without a container, the list is not proof", one, answers{list()}, "", platforms.LookupResult{}, ""},
		"carousel":                  {"one image is not a carousel", two, answers{list(post(t, "2", "hello", later, image), post(t, "1", "hello", noon, album))}, "", fits("1", noon), ""},
		"reel":                      {"reels are listed as videos", reel, answers{list(post(t, "2", "hello", later, image), post(t, "1", "hello", noon, video, `"media_product_type":"REELS"`))}, "", fits("1", noon), ""},
		"story":                     {"Herald does not publish stories", one, answers{list(post(t, "1", "hello", noon, image, `"media_product_type":"STORY"`))}, "", platforms.LookupResult{}, ""},
		"kind unknown":              {"an unknown size is accepted", one, answers{list(post(t, "1", "hello", noon))}, "", fits("1", noon), ""},
		"too old":                   {"a post older than the attempt cannot be its post", one, answers{list(post(t, "1", "hello", noon.Add(-time.Second)))}, "", platforms.LookupResult{}, ""},
		"taken":                     {"a post of another job is not this job's", one, answers{list(post(t, "2", "hello", later), post(t, "1", "hello", noon))}, "2", fits("1", noon), ""},
		"two":                       {"two matches need a user's decision; the earlier one is named", one, answers{list(post(t, "2", "hello", later), post(t, "1", "hello", noon))}, "", platforms.LookupResult{Matches: 2, ExternalID: "1", ExternalURL: "https://instagram.example/1", PostedAt: noon}, ""},
		"no list":                   {"a response without a list is not an empty list", one, answers{says(200, `{}`)}, "", platforms.LookupResult{}, platforms.ClassUnknown},
		"cut":                       {"a truncated response is not proof", one, answers{says(200, `{"data":[{"id":"1`)}, "", platforms.LookupResult{}, platforms.ClassUnknown},
		"odd entry":                 {"an entry without an id may be the post", one, answers{says(200, `{"data":[{"caption":"hello"}]}`)}, "", platforms.LookupResult{}, platforms.ClassUnknown},
		"limited":                   {"a limit passes", one, answers{says(429, ``)}, "", platforms.LookupResult{}, platforms.ClassRateLimited},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, inTurn(tc.answers))
			tc.job.BelongsToOther = func(id string) bool { return id == tc.taken }
			got, err := p.Lookup(t.Context(), tc.job)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			for _, r := range server.Requests() {
				if r.Method != http.MethodGet || r.Query.Has("access_token") {
					t.Errorf("a lookup requested %+v", r)
				}
			}
		})
	}
}

// TestLookupAmongOlderPosts looks up a post on an account that already had a post with the same text before the
// attempt, such as an account that posts "good morning" every day.
func TestLookupAmongOlderPosts(t *testing.T) {
	tests := map[string]struct {
		reason, state string
		after         time.Duration
		matches       int
		class         platforms.Class
	}{
		"at once":       {"a post that is not listed yet may be listed later", "PUBLISHED", time.Minute, 0, platforms.ClassUnknown},
		"later":         {"an older post is another one, however long the new one is not listed", "PUBLISHED", 11 * time.Minute, 0, platforms.ClassUnknown},
		"not published": {"an unpublished container is not listed", "FINISHED", 11 * time.Minute, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, func(w http.ResponseWriter, r *http.Request) {
				switch since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64); {
				case strings.HasSuffix(r.URL.Path, container):
					containerState(tc.state)(w, r)
				case since < noon.Add(-time.Hour).Unix():
					list(post(t, "1", "hello", noon.Add(-time.Hour)))(w, r)
				default:
					list()(w, r)
				}
			})
			p.config.Clock.(recorder.Clock).Step(tc.after)
			job := jobFor("hello", "", picture("a"))
			job.Checkpoint = container
			got, err := p.Lookup(t.Context(), job)
			if got.Matches != tc.matches || class(err) != tc.class {
				t.Errorf("%s: got %+v, %v after %v", tc.reason, got, err, server.Paths())
			}
		})
	}
}

func TestLookupReadsEveryPage(t *testing.T) {
	pages := map[string]string{
		"":   `{"data":[` + post(t, "3", "newer", noon.Add(2*time.Hour)) + `],"paging":{"next":"https://elsewhere.example/x?access_token=s3cr3t&limit=100&since=1&after=p2"}}`,
		"p2": `{"data":[` + post(t, "2", "hello", noon.Add(time.Hour)) + `],"paging":{"next":"https://elsewhere.example/x?after=p3"}}`,
		"p3": `{"data":[` + post(t, "1", "hello", noon) + `],"paging":{"cursors":{"after":"p4"}}}`,
	}
	p, server := newInstagram(t, func(w http.ResponseWriter, r *http.Request) { says(200, pages[r.URL.Query().Get("after")])(w, r) })
	got, err := p.Lookup(t.Context(), jobFor("hello", linked, picture("a")))
	if err != nil || got.Matches != 2 || got.ExternalID != "1" {
		t.Errorf("got %+v, %v; want both matches, the earlier named", got, err)
	}
	seen := server.Requests()
	if len(seen) != len(pages) {
		t.Fatalf("%d requests for %d pages", len(seen), len(pages))
	}
	if q := seen[0].Query; seen[0].Path != "/facebook/v25.0/42/media" || q.Get("limit") != "100" || q.Get("since") != strconv.FormatInt(noon.Unix()-1, 10) {
		t.Errorf("requested %+v", seen[0])
	}
	if seen[1].Query.Has("access_token") || seen[1].Token != "access" {
		t.Errorf("the token must be in the header only; got %+v", seen[1])
	}
}

func TestLookupEnds(t *testing.T) {
	p, server := newInstagram(t, says(200, `{"data":[],"paging":{"next":"https://elsewhere.example/x?after=more"}}`))
	if _, err := p.Lookup(t.Context(), jobFor("hello", "", picture("a"))); class(err) != platforms.ClassUnknown || len(server.Requests()) != meta.MaxPages {
		t.Errorf("an endless list proves nothing; got %v after %d pages", err, len(server.Requests()))
	}
}
