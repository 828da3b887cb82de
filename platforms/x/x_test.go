// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// noon is the time of these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// seen is a request that a test server received.
type seen struct {
	*http.Request
	body string
}

// newX starts a server that sends the given response, and returns a Platform that uses it. requests returns the
// requests received so far: after a closed connection, the client does not know whether the server is still handling a
// request.
func newX(t *testing.T, config Config, answer http.HandlerFunc) (p *Platform, requests func() []seen) {
	t.Helper()
	var mu sync.Mutex
	var arrived []seen
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read the request: %v", err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		mu.Lock()
		arrived = append(arrived, seen{Request: r, body: string(body)})
		mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	config.APIURL = server.URL
	config.Clock = clocktesting.NewFakeClock(noon)
	return New(config, transport.New(transport.Options{})), func() []seen {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(arrived)
	}
}

// says responds with the given status and body.
func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// snowflake returns the id of a post created at the given time.
func snowflake(at time.Time) string {
	return fmt.Sprint((at.UnixMilli()-snowflakeEpoch)<<snowflakeShift | 7)
}

func jobFor(text string) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access"}},
		Content: platforms.Content{Category: v1alpha1.CategoryText, Text: text},
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !limits.Allows(v1alpha1.CategoryText) {
		t.Error("X takes posts of text only")
	}
	if got := limits.CaptionLength("read https://example.com/" + strings.Repeat("a", 300)); got != 28 {
		t.Errorf("an address must count 23, so that the whole is 28; got %d", got)
	}
	tests := map[string]struct {
		reason, caption string
		problem         bool
	}{
		"plain":           {"ordinary text is fine", "We launched.", false},
		"empty":           {"whether a caption may be empty is not X's to say", "", false},
		"byte order mark": {"X refuses U+FEFF anywhere", "We\uFEFF launched.", true},
		"blanks":          {"X refuses a post without a visible character", " \n\t", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := limits.CaptionProblem(tc.caption); (got != "") != tc.problem {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

func TestSnowflake(t *testing.T) {
	at := noon.Add(123 * time.Millisecond)
	got, ok := snowflakeTime(snowflake(at))
	if !ok || !got.Equal(at) {
		t.Errorf("got %v, %v; want %v", got, ok, at)
	}
	for _, id := range []string{"", "abc", "-5", "12", "99999999999999999999"} {
		if _, ok := snowflakeTime(id); ok {
			t.Errorf("%q is no id of X's, but got a time", id)
		}
	}
	// The bound is exclusive: a post of the same millisecond is above it.
	bound, _ := snowflakeTime(idBefore(at))
	if want := at.Add(-time.Millisecond); !bound.Equal(want) {
		t.Errorf("the bound lies at %v, want %v", bound, want)
	}
	if got := idBefore(time.Time{}); got != "" {
		t.Errorf("before X existed there is no id; got %q", got)
	}
}

// TestCashtags tests the warning for texts that an app on a self-serve plan may not post.
func TestCashtags(t *testing.T) {
	warning := New(Config{}, nil).Capabilities().CaptionWarning
	for text, want := range map[string]bool{
		"":                           false,
		"$ACME is up":                false,
		"$ACME and $abc":             true,
		"$ACME $ABC":                 true,
		"$ACME, ($ABC) and $BRK.B":   true,
		"a$ACME b$ABC":               false,
		"costs $5 and $10":           false,
		"$TOOLONGNAME and $OTHERTOO": false,
	} {
		if got := warning(text); (got != "") != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
