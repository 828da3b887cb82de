// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// TestLimiter reads several bodies without ending their reservations.
func TestLimiter(t *testing.T) {
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
			"large bodies share three quarters", repeated(64, mib, "a", "b", "c", "d", "e", "f", "g", "h"), 58,
		},
		"small ones": {
			"small bodies have the remaining quarter",
			append(repeated(64, mib, "a", "b", "c", "d", "e", "f"), repeated(100, 1000, "z")...), 58,
		},
		"tiny ones":    {"each body has a minimum size", repeated(1000, 0, "a"), 1000 - 512},
		"unknown size": {"an unknown size counts as the largest", repeated(4, -1, "a"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, refused := NewBodyLimiter(MaxBodyBytes), 0
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
				leave = append(leave, done, done) // calling it twice has no effect
				if errors.Is(err, ErrBodiesFull) {
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
			if g.used != 0 || len(g.byCaller) != 0 || len(g.arriving) != 0 {
				t.Errorf("%d bytes of %v stay", g.used, g.byCaller)
			}
		})
	}
}

// fits reports whether a body would be admitted.
func (g *BodyLimiter) fits(caller string, size, most int64) bool {
	if size < 0 {
		size = most
	}
	size = max(size, minBody)
	taken := g.acquire(caller, size, time.Now(), func() {})
	if taken == nil {
		return false
	}
	g.release(taken)
	return true
}

// sent is a body: its caller and its size.
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

// deadlines records the read deadlines.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestDeadline verifies that a body has a read deadline, which is removed afterwards, because later reads only detect
// that the client has disconnected.
func TestDeadline(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	before := time.Now()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", minReadRate)))
	if body, _, err := (*BodyLimiter)(nil).Read(w, r, "a", 1<<20); err != nil || len(body) != minReadRate {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if len(w.set) != 2 || !w.set[1].IsZero() || w.set[0].Before(before.Add(readGrace+time.Second)) {
		t.Errorf("deadlines %v", w.set)
	}
	w.set = nil
	r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", iotest.ErrReader(os.ErrDeadlineExceeded))
	if _, _, err := (*BodyLimiter)(nil).Read(w, r, "a", 1<<20); !errors.Is(err, ErrBodyUnread) || len(w.set) != 1 || w.set[0].IsZero() {
		t.Errorf("a missing body, %v: the read deadlines are %v", err, w.set)
	}
	for size, want := range map[int64]time.Duration{0: readGrace, minReadRate: readGrace + time.Second, 1 << 20: readGrace + 32*time.Second} {
		if got := readTimeout(size); got != want {
			t.Errorf("%d bytes have %s, want %s", size, got, want)
		}
	}
}

// dribble is a connection whose body never ends: its reader blocks until the deadline has passed.
type dribble struct {
	http.ResponseWriter
	cut  chan struct{}
	once sync.Once
}

func (d *dribble) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && !at.After(time.Now()) {
		d.once.Do(func() { close(d.cut) })
	}
	return nil
}

func (d *dribble) Read([]byte) (int, error) {
	<-d.cut
	return 0, os.ErrDeadlineExceeded
}

// TestDribble sends slow bodies from several callers, which together reserve the whole limit.
func TestDribble(t *testing.T) {
	t.Parallel()
	four := []string{"a", "b", "c", "d"}
	for name, tc := range map[string]struct {
		reason string
		slow   []sent
		// wait is the time between them and body.
		wait time.Duration
		body sent
		want error
		// cut holds the callers whose bodies were cut off.
		cut map[string]int
	}{
		"small ones":             {"one of the requests is cancelled", repeated(128, smallBody, four...), 2 * time.Second, sent{"z", 1000}, nil, map[string]int{"a": 1}},
		"at first":               {"a body has a minimum time", repeated(128, smallBody, four...), minTransferTime - time.Second/2, sent{"z", 1000}, ErrBodiesFull, nil},
		"large ones":             {"large bodies are cancelled too", repeated(6, 1<<20, "a", "b", "c"), 4 * time.Second, sent{"z", 100 << 10}, nil, map[string]int{"a": 1}},
		"their share of time":    {"a large body has more time", repeated(6, 1<<20, "a", "b", "c"), 2 * time.Second, sent{"z", 100 << 10}, ErrBodiesFull, nil},
		"room for all":           {"slow bodies continue while there is room", repeated(64, smallBody, four...), 8 * time.Second, sent{"z", 1000}, nil, nil},
		"one of a normal caller": {"the caller with the largest share is cancelled first", append([]sent{{"z", smallBody}}, repeated(127, smallBody, four...)...), 2 * time.Second, sent{"y", 1000}, nil, map[string]int{"a": 1}},
		"own":                    {"a caller's share does not grow", repeated(32, smallBody, "a"), 2 * time.Second, sent{"a", 1000}, ErrBodiesFull, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := NewBodyLimiter(MaxBodyBytes)
				var mu sync.Mutex
				cut, all := map[string]int{}, []*dribble{}
				var readers sync.WaitGroup
				for _, one := range tc.slow {
					d := &dribble{ResponseWriter: httptest.NewRecorder(), cut: make(chan struct{})}
					all = append(all, d)
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", d)
					r.ContentLength = one.size
					readers.Go(func() {
						_, done, err := g.Read(d, r, one.caller, 1<<20)
						defer done()
						mu.Lock()
						defer mu.Unlock()
						if errors.Is(err, ErrBodiesFull) {
							cut[one.caller]++
						}
					})
					time.Sleep(time.Millisecond) //nolint:forbidigo // fake clock: the bodies arrive in order
				}
				time.Sleep(tc.wait) //nolint:forbidigo // fake clock
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", int(tc.body.size))))
				_, done, err := g.Read(httptest.NewRecorder(), r, tc.body.caller, 1<<20)
				synctest.Wait()
				if !errors.Is(err, tc.want) || len(cut) != len(tc.cut) || cut["a"] != tc.cut["a"] {
					t.Errorf("%s: %v, and %v were cut off; want %v and %v", tc.reason, err, cut, tc.want, tc.cut)
				}
				if g.used > MaxBodyBytes {
					t.Errorf("%d bytes are reserved", g.used)
				}
				done()
				for _, d := range all {
					d.once.Do(func() { close(d.cut) })
				}
				readers.Wait()
				if g.used != 0 || len(g.byCaller) != 0 || len(g.arriving) != 0 {
					t.Errorf("%d bytes of %v stay", g.used, g.byCaller)
				}
			})
		})
	}
}

// TestTooLarge verifies that a body whose Content-Length exceeds the limit is neither read nor counted.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	g := NewBodyLimiter(MaxBodyBytes)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", unread{t})
	r.ContentLength = 101
	_, done, err := g.Read(httptest.NewRecorder(), r, "a", 100)
	defer done()
	if large, ok := errors.AsType[*http.MaxBytesError](err); !ok || large.Limit != 100 || !errors.Is(err, ErrBodyUnread) || g.used != 0 {
		t.Errorf("got %v, with %d bytes reserved", err, g.used)
	}
	r = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 101)))
	r.ContentLength = -1
	_, done, err = g.Read(httptest.NewRecorder(), r, "a", 100)
	if _, ok := errors.AsType[*http.MaxBytesError](err); !ok {
		t.Errorf("got %v", err)
	}
	done()
	if g.used != 0 {
		t.Errorf("%d bytes remain reserved", g.used)
	}
}
