// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// unread is a body that must not be touched.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// TestGate sends bodies one after another, which all stay.
func TestGate(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		reason  string
		sent    []sent
		refused int
	}{
		"many of one": {
			"a caller has a quarter: two of these", repeated(64, mib, "a"), 62,
		},
		"many of all": {
			"large bodies have three quarters", repeated(64, mib, "a", "b", "c", "d", "e", "f", "g", "h"), 58,
		},
		"small ones": {
			"those have their room although large ones took theirs",
			append(repeated(64, mib, "a", "b", "c", "d", "e", "f"), repeated(100, 1000, "z")...), 58,
		},
		"tiny ones": {"each counts something", repeated(1000, 0, "a"), 1000 - 512},
		"not told":  {"it counts as the largest", repeated(4, -1, "a"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, refused := NewGate(Most), 0
			var leave []func()
			for _, one := range tc.sent {
				body := io.Reader(strings.NewReader(strings.Repeat("x", int(max(one.size, 0)))))
				full := !g.fits(one.caller, one.size, mib)
				if full {
					body = unread{t}
				}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
				r.ContentLength = one.size
				_, done, err := g.Read(httptest.NewRecorder(), r, one.caller, mib)
				leave = append(leave, done, done) // twice does no harm
				if errors.Is(err, ErrFull) {
					refused++
				} else if err != nil {
					t.Error(err)
				}
			}
			if refused != tc.refused {
				t.Errorf("%s: %d refused, want %d", tc.reason, refused, tc.refused)
			}
			for _, done := range leave {
				done()
			}
			if g.used != 0 || len(g.of) != 0 {
				t.Errorf("%d bytes of %v stay", g.used, g.of)
			}
		})
	}
}

// fits says whether a body will be let in.
func (g *Gate) fits(caller string, size, most int64) bool {
	if size < 0 {
		size = most
	}
	size = max(size, least)
	if !g.enter(caller, size) {
		return false
	}
	g.leave(caller, size)
	return true
}

// sent is a body: of whom, and how large.
type sent struct {
	caller string
	size   int64
}

func repeated(times int, size int64, callers ...string) (all []sent) {
	for i := range times {
		all = append(all, sent{callers[i%len(callers)], size})
	}
	return all
}

// deadlines remembers until when a body may arrive.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestDeadline holds that a body has a time to arrive in, which ends with it: what is read
// afterwards is whether the client is still there.
func TestDeadline(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	before := time.Now()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", pace)))
	if body, _, err := (*Gate)(nil).Read(w, r, "a", 1<<20); err != nil || len(body) != pace {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if len(w.set) != 2 || !w.set[1].IsZero() || w.set[0].Before(before.Add(grace+time.Second)) {
		t.Errorf("deadlines %v", w.set)
	}
	for size, want := range map[int64]time.Duration{0: grace, pace: grace + time.Second, 1 << 20: grace + 32*time.Second} {
		if got := within(size); got != want {
			t.Errorf("%d bytes may take %s, want %s", size, got, want)
		}
	}
}

// TestTooLarge holds that a body which says that it is too large is not read, and takes no room.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	g := NewGate(Most)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", unread{t})
	r.ContentLength = 101
	_, done, err := g.Read(httptest.NewRecorder(), r, "a", 100)
	defer done()
	if large, ok := errors.AsType[*http.MaxBytesError](err); !ok || large.Limit != 100 || !errors.Is(err, ErrUnread) || g.used != 0 {
		t.Errorf("got %v, with %d bytes taken", err, g.used)
	}
	r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 101)))
	r.ContentLength = -1
	_, done, err = g.Read(httptest.NewRecorder(), r, "a", 100)
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
		t.Errorf("got %v", err)
	}
	done()
	if g.used != 0 {
		t.Errorf("%d bytes stay taken", g.used)
	}
}
