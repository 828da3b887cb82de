// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

func TestAwait(t *testing.T) {
	tests := map[string]struct {
		reason       string
		asks         int
		within, took time.Duration
		err          error
	}{
		"immediately": {"a finished container needs no wait", 1, time.Minute, 0, nil},
		"later":       {"the pauses grow, up to the longest", 5, time.Minute, 300*time.Millisecond + 600*time.Millisecond + 2*time.Second, nil},
		"never":       {"the loop waits until the context ends", 1000, time.Minute, time.Minute, context.DeadlineExceeded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.within)
				defer cancel()
				clk, asked := clock.RealClock{}, 0
				started := clk.Now()
				err := Poll(ctx, clk, time.Second, func() bool { asked++; return asked < tc.asks })
				if took := clk.Since(started); !errors.Is(err, tc.err) || took != tc.took {
					t.Errorf("%s: %v after %d questions in %v, want %v in %v", tc.reason, err, asked, took, tc.err, tc.took)
				}
			})
		})
	}
}

func TestParseState(t *testing.T) {
	for word, want := range map[string]bool{"IN_PROGRESS": true, "FINISHED": true, "PUBLISHED": true, "ERROR": true, "EXPIRED": true, "gone": false, "": false, "LATER": false} {
		if got, known := parseState(word); known != want || got != ContainerState(word) {
			t.Errorf("%q: got %q, %v", word, got, known)
		}
	}
}

func TestList(t *testing.T) {
	pages := map[string]string{
		"whole":  `{"data":[{"id":"3"},{"id":"2"}],"paging":{"next":"https://g.example/x?page=second"}}`,
		"second": `{"data":[{"id":"2"},{"id":"1"},{"id":"9"}]}`, "endless": `{"data":[],"paging":{"next":"https://g.example/x?page=endless"}}`,
		"no list": `{}`, "no id": `{"data":[{"text":"hello"}]}`,
		"later": `{"data":[{"id":"1"}],"paging":{"next":"https://g.example/x?page=broken"}}`,
	}
	tests := map[string]struct {
		reason string
		found  []jsondoc.Text
		class  platforms.Class
	}{
		"whole":   {"all pages are read", []jsondoc.Text{"3", "2", "2", "1", "9"}, ""},
		"endless": {"a truncated list is invalid", nil, platforms.ClassUnknown},
		"no list": {"a response without a list is not an empty list", nil, platforms.ClassUnknown},
		"no id":   {"an entry without an id may be the container", nil, platforms.ClassUnknown},
		"later":   {"an unreadable page makes the list incomplete", nil, platforms.ClassTransient},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := recorder.Start(t, func(w http.ResponseWriter, r *http.Request) {
				page, ok := pages[r.URL.Query().Get("page")]
				if !ok {
					recorder.HangUp(w, r)
				}
				fmt.Fprint(w, page)
			})
			g := &Graph{Client: client.Client{BaseURL: server.URL, Transport: transport.New(transport.Options{})}, Version: "v1.0", Clock: clock.RealClock{}}
			var found []jsondoc.Text
			failure := List(t.Context(), g, "/42/posts", url.Values{"page": {name}}, platforms.Token{Access: "t"}, 3, func(post Post) bool {
				found = append(found, post.ID)
				return ValidID(post.ID.String())
			})
			if failure != nil {
				if found = nil; failure.Class != tc.class {
					t.Errorf("%s: got %+v", tc.reason, failure)
				}
			}
			if diff := cmp.Diff(tc.found, found); diff != "" || failure == nil && tc.class != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, failure, diff)
			}
		})
	}
}

// TestListByCursors reads a listing that does not link to its next page. The cursor of each full page must be used
// instead.
func TestListByCursors(t *testing.T) {
	pages := map[string]string{
		"":  `{"data":[{"id":"4"},{"id":"3"}],"paging":{"cursors":{"before":"z","after":"a"}}}`,
		"a": `{"data":[{"id":"2"},{"id":"1"}],"paging":{"cursors":{"after":"b"}}}`,
		"b": `{"data":[],"paging":{}}`,
		// If a page's cursor led back to the same page, reading would never end.
		"c": `{"data":[{"id":"2"},{"id":"1"}],"paging":{"cursors":{"after":"c"}}}`,
		"d": `{"data":[{"id":"2"}],"paging":{"cursors":{"after":"a"}}}`,
	}
	tests := map[string]struct {
		reason, from string
		found        []jsondoc.Text
	}{
		"all":   {"a full page may be followed by another one", "", []jsondoc.Text{"4", "3", "2", "1"}},
		"same":  {"a cursor that points to itself ends the list", "c", []jsondoc.Text{"2", "1"}},
		"short": {"a page that is not full is the last", "d", []jsondoc.Text{"2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := recorder.Start(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("limit") != "2" || r.URL.Query().Get("since") != "7" {
					t.Errorf("requested %s", r.URL)
				}
				fmt.Fprint(w, pages[r.URL.Query().Get("after")])
			})
			g := &Graph{Client: client.Client{BaseURL: server.URL, Transport: transport.New(transport.Options{})}, Version: "v1.0", Clock: clock.RealClock{}}
			var found []jsondoc.Text
			query := url.Values{"limit": {"2"}, "since": {"7"}}
			if tc.from != "" {
				query.Set("after", tc.from)
			}
			failure := List(t.Context(), g, "/42/posts", query, platforms.Token{Access: "t"}, 9, func(post Post) bool {
				found = append(found, post.ID)
				return true
			})
			if diff := cmp.Diff(tc.found, found); diff != "" || failure != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, failure, diff)
			}
		})
	}
}

func TestSameCaption(t *testing.T) {
	tests := map[string]struct {
		reason, sent, listed string
		want                 bool
	}{
		"same":    {"the text that was sent", "a  b", "a b", true},
		"no text": {"files need no text", " ", "", true},
		"missing": {"a missing text belongs to another post", "a", "", false},
		"added":   {"a text that was not sent belongs to another post", "", "a", false},
	}
	for name, tc := range tests {
		if got := SameCaption(tc.sent, jsondoc.Text(tc.listed)); got != tc.want {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}
