// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// zeros is a file in which nothing stands.
type zeros struct{}

func (zeros) Open(_ context.Context, _, length int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(make([]byte, length))), nil
}

func (zeros) Address(context.Context, time.Duration) (string, error) {
	return "", errors.New("X fetches nothing")
}

// uploads takes uploads as X does. It knows one of the id "5", and begins those of
// the id "7".
type uploads struct {
	mu sync.Mutex
	// forgotten is the id that it does not know any more, and status its answer.
	forgotten string
	status    int
	did       []string
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	what := strings.TrimPrefix(r.URL.Path, "/2/media/upload")
	if _, segment, found := strings.Cut(string(body), `name="segment_index"`); found {
		what += "#" + strings.Fields(segment)[0]
	}
	u.mu.Lock()
	u.did = append(u.did, what)
	u.mu.Unlock()
	if u.forgotten != "" && strings.HasPrefix(what, "/"+u.forgotten) {
		w.WriteHeader(u.status)
		fmt.Fprint(w, `{"title":"Invalid Request","detail":"no such media","type":"about:blank"}`)
		return
	}
	fmt.Fprint(w, `{"data":{"id":"7"}}`)
}

func (u *uploads) calls() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.did
}

// TestGoesOn resumes the upload of six chunks of which four are there.
func TestGoesOn(t *testing.T) {
	all := func(id string, from int) []string {
		var out []string
		for i := from; i < 6; i++ {
			out = append(out, fmt.Sprintf("/%s/append#%d", id, i))
		}
		return append(out, "/"+id+"/finalize", "")
	}
	anew := append([]string{"/initialize"}, all("7", 0)...)
	tests := map[string]struct {
		reason     string
		checkpoint string
		server     *uploads
		want       []string
		id         string
		class      platforms.Class
	}{
		"goes on":   {"four chunks are not sent again", "part:5:4", &uploads{}, all("5", 4), "5", ""},
		"finalized": {"of a whole upload only the end is repeated", "part:5:6", &uploads{}, all("5", 6), "5", ""},
		"forgotten": {
			"what X does not know any more begins anew", "part:5:4", &uploads{forgotten: "5", status: 400},
			append([]string{"/5/append#4"}, anew...), "7", "",
		},
		"gone": {
			"the same in another form", "part:5:4", &uploads{forgotten: "5", status: 404}, append([]string{"/5/append#4"}, anew...), "7", "",
		},
		"outage": {
			"an outage says nothing about the upload", "part:5:4", &uploads{forgotten: "5", status: 503},
			[]string{"/5/append#4", "/5/append#4", "/5/append#4"},
			"", platforms.ClassTransient,
		},
		"odd id":        {"a name that is none begins anew", "part:5/6:4", &uploads{}, anew, "7", ""},
		"odd number":    {"as does one without a number", "part:5:x", &uploads{}, anew, "7", ""},
		"absurd number": {"or with one that cannot be", "part:5:-4", &uploads{}, anew, "7", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			var notes []string
			job := platforms.Job{
				Checkpoint: tc.checkpoint,
				Content: platforms.Content{Category: v1alpha1.CategoryVideo, Media: []platforms.File{
					{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: 5*chunk + 1, Bytes: zeros{}},
				}},
				Keep: func(_ context.Context, checkpoint, secret string) error {
					notes = append(notes, checkpoint+secret)
					return nil
				},
			}
			checkpoint, failure := New(Config{APIURL: server.URL}, transport.New(transport.Options{})).Prepare(t.Context(), job)
			if failure == nil && tc.class != "" || failure != nil && failure.Class != tc.class {
				t.Fatalf("%s: got %q, %v", tc.reason, checkpoint, failure)
			}
			if diff := cmp.Diff(tc.want, tc.server.calls()); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
			}
			if failure == nil && checkpoint != tc.id {
				t.Errorf("%s: prepared %q, want %q", tc.reason, checkpoint, tc.id)
			}
			if tc.id == "7" {
				if diff := cmp.Diff([]string{"part:7:2", "part:7:4"}, notes); diff != "" {
					t.Errorf("%s: notes (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}
