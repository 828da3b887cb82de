// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func made(change ...func(*v1alpha1.Media)) *v1alpha1.Media {
	m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u", CreationTimestamp: metav1.NewTime(noon)}}
	for _, c := range change {
		c(m)
	}
	return m
}

func offered(until time.Duration) func(*v1alpha1.Media) {
	return func(m *v1alpha1.Media) {
		m.Status.UploadURL, m.Status.UploadURLExpiresAt = "https://a", v1alpha1.NewTimePtr(noon.Add(until))
	}
}

func handedOut(until string) func(*v1alpha1.Media) {
	return func(m *v1alpha1.Media) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.UploadUntilAnnotation, until)
	}
}

func madeUnderKey(m *v1alpha1.Media) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.RequestAnnotation, "0123")
}

func TestAwait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		media          *v1alpha1.Media
		at             time.Duration
		expired, offer bool
	}{
		"new from the API":            {"its client has an upload URL", made(fromTheAPI), 0, false, false},
		"API, in its grace":           {"an upload that started in time may continue", made(fromTheAPI), 74 * time.Minute, false, false},
		"API, after its grace":        {"the grace period follows the 15 minutes of the URL", made(fromTheAPI), 75 * time.Minute, true, false},
		"API, a second address":       {"the last URL counts", made(fromTheAPI, handedOut("2026-11-20T20:15:00Z")), 9 * time.Hour, false, false},
		"API, a second address ended": {"the last URL's grace period has ended", made(fromTheAPI, handedOut("2026-11-20T20:15:00Z")), 9*time.Hour + 15*time.Minute, true, false},
		"API, an earlier address":     {"an earlier URL does not shorten the wait", made(fromTheAPI, handedOut("2026-11-20T12:00:00Z")), 74 * time.Minute, false, false},
		"API, nonsense":               {"an unreadable time is ignored", made(fromTheAPI, handedOut("for ever")), 75 * time.Minute, true, false},
		"API, under a key":            {"the request may be repeated within a day", made(fromTheAPI, madeUnderKey), 24 * time.Hour, false, false},
		"API, under a key, a day old": {"the key's grace period has ended", made(fromTheAPI, madeUnderKey), 25 * time.Hour, true, false},
		"API, key and late address":   {"the later end counts", made(fromTheAPI, madeUnderKey, handedOut("2026-11-21T12:10:00Z")), 25*time.Hour + 9*time.Minute, false, false},
		"new from kubectl":            {"the file needs an upload URL", made(), 0, false, true},
		"a fresh address":             {"the URL is valid for some time", made(offered(15 * time.Minute)), 0, false, false},
		"five minutes left":           {"five minutes are enough to start an upload", made(offered(15 * time.Minute)), 10 * time.Minute, false, false},
		"less left":                   {"a client may just be reading the URL", made(offered(15 * time.Minute)), 10*time.Minute + time.Second, false, true},
		"ended":                       {"the manager was unavailable", made(offered(15 * time.Minute)), time.Hour, false, true},
		"after a day":                 {"a new URL is no longer offered", made(offered(15 * time.Minute)), 24 * time.Hour, false, false},
		"after a day and an hour":     {"the wait has ended", made(offered(15 * time.Minute)), 25 * time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := planUpload(tc.media, 24*time.Hour, noon.Add(tc.at))
			if got.expired != tc.expired || got.offer != tc.offer {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if !got.expired && got.recheckAfter <= 0 {
				t.Errorf("%s: it is never checked again", tc.reason)
			}
		})
	}
}

// The wait ends at the deadline, not one polling interval after it.
func TestAwaitEndsInTime(t *testing.T) {
	got := planUpload(made(fromTheAPI), 24*time.Hour, noon.Add(75*time.Minute-time.Second))
	if got.recheckAfter != time.Second {
		t.Errorf("the next check is after %s", got.recheckAfter)
	}
}

func TestPauses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		pause     func(time.Duration) time.Duration
		after     time.Duration
		low, high time.Duration
	}{
		"poll immediately":  {"the shortest", func(d time.Duration) time.Duration { return pollPause(d, "u") }, 0, 1800 * time.Millisecond, 2200 * time.Millisecond},
		"poll after 4 min":  {"an eighth", func(d time.Duration) time.Duration { return pollPause(d, "u") }, 4 * time.Minute, 27 * time.Second, 33 * time.Second},
		"poll after a day":  {"the longest", func(d time.Duration) time.Duration { return pollPause(d, "u") }, 24 * time.Hour, 270 * time.Second, 330 * time.Second},
		"poll before":       {"clocks differ", func(d time.Duration) time.Duration { return pollPause(d, "u") }, -time.Minute, 1800 * time.Millisecond, 2200 * time.Millisecond},
		"fetch immediately": {"the shortest", func(d time.Duration) time.Duration { return fetchPause(d, "u") }, 0, 4500 * time.Millisecond, 5500 * time.Millisecond},
		"fetch after 4 min": {"a quarter", func(d time.Duration) time.Duration { return fetchPause(d, "u") }, 4 * time.Minute, 54 * time.Second, 66 * time.Second},
		"fetch after a day": {"the longest", func(d time.Duration) time.Duration { return fetchPause(d, "u") }, 24 * time.Hour, 9 * time.Minute, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.pause(tc.after); got < tc.low || got > tc.high {
				t.Errorf("%s, plus or minus 10 %%: got %s", tc.reason, got)
			}
		})
	}
	if pollPause(time.Minute, "a") == pollPause(time.Minute, "b") {
		t.Error("two files are polled at the same time")
	}
}

func TestRecheck(t *testing.T) {
	readyAt := func(after time.Duration) func(*v1alpha1.Media) {
		return func(m *v1alpha1.Media) {
			conditions.Apply(&m.Status.Conditions, conditions.Summary{Ready: true, Reason: "Uploaded"}, 1, noon.Add(after))
		}
	}
	ready := readyAt(0)
	for name, tc := range map[string]struct {
		reason string
		media  *v1alpha1.Media
		at     time.Duration
		due    bool
		in     time.Duration
	}{
		"just verified":    {"an upload URL may still be valid", made(ready), 0, false, 16 * time.Minute},
		"address ended":    {"the file can no longer be overwritten", made(ready), 16 * time.Minute, true, 0},
		"a little later":   {"the manager was busy", made(ready), 30 * time.Minute, true, 0},
		"long ago":         {"the sweep has checked it", made(ready), 2 * time.Hour, false, 0},
		"API":              {"the URL's validity counts from its request", made(fromTheAPI, readyAt(5*time.Minute)), 10 * time.Minute, false, 6 * time.Minute},
		"API, ended":       {"its only URL has expired", made(fromTheAPI, readyAt(5*time.Minute)), 16 * time.Minute, true, 0},
		"API, asked again": {"a second URL was issued after the file was verified", made(fromTheAPI, ready, handedOut("2026-11-20T12:35:00Z")), 20 * time.Minute, false, 16 * time.Minute},
		"API, both ended":  {"both URLs have expired", made(fromTheAPI, ready, handedOut("2026-11-20T12:35:00Z")), 36 * time.Minute, true, 0},
		"API, much later":  {"the second URL was issued after a day", made(fromTheAPI, ready, handedOut("2026-11-21T12:15:00Z")), 24*time.Hour + 16*time.Minute, true, 0},
		"fetched":          {"the file never had an upload URL", made(ready, fromSource("https://a.example")), 16 * time.Minute, false, 0},
		"without a status": {"the time of its upload is unknown", made(), 16 * time.Minute, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if due, in := recheckDue(tc.media, noon.Add(tc.at)); due != tc.due || in != tc.in {
				t.Errorf("%s: got %v, %s", tc.reason, due, in)
			}
		})
	}
}

func TestDeletionTime(t *testing.T) {
	const ttl = 90 * 24 * time.Hour
	in := func(phase v1alpha1.MediaPhase) func(*v1alpha1.Media) {
		return func(m *v1alpha1.Media) { m.Status.Phase, m.Status.UnusedSince = phase, v1alpha1.NewTimePtr(noon) }
	}
	when := func(w v1alpha1.WhenUnused) func(*v1alpha1.Media) {
		return func(m *v1alpha1.Media) { m.Spec.WhenUnused = w }
	}
	used := func(m *v1alpha1.Media) { m.Status.UnusedSince = nil }
	source := fromSource("https://a.example")
	for name, tc := range map[string]struct {
		reason string
		media  *v1alpha1.Media
		ttl    time.Duration
		want   time.Duration // zero: it stays
	}{
		"uploaded":                       {"a day", made(in(v1alpha1.MediaUploaded)), ttl, 24 * time.Hour},
		"expired":                        {"a day", made(in(v1alpha1.MediaExpired)), ttl, 24 * time.Hour},
		"rejected":                       {"users can read the reason as long as other results", made(in(v1alpha1.MediaRejected)), ttl, ttl},
		"rejected, results not retained": {"the minimum is a day", made(in(v1alpha1.MediaRejected)), 0, 24 * time.Hour},
		"pending":                        {"an upload is expected", made(in(v1alpha1.MediaPending)), ttl, 0},
		"used":                           {"a post refers to the file", made(in(v1alpha1.MediaUploaded), used), ttl, 0},
		"to be kept":                     {"the spec keeps it", made(in(v1alpha1.MediaUploaded), when(v1alpha1.KeepWhenUnused)), ttl, 0},
		"from a source":                  {"a tool would recreate the file", made(in(v1alpha1.MediaUploaded), source), ttl, 0},
		"from a source, to be deleted":   {"the spec deletes it", made(in(v1alpha1.MediaUploaded), source, when(v1alpha1.DeleteWhenUnused)), ttl, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			at, ok := deleteAt(tc.media, 24*time.Hour, tc.ttl)
			if ok != (tc.want != 0) || ok && !at.Equal(noon.Add(tc.want)) {
				t.Errorf("%s: got %s, %v", tc.reason, at, ok)
			}
		})
	}
	for reason, tc := range map[string]struct {
		media *v1alpha1.Media
		want  time.Duration
	}{
		"without a key: as long as an unused file remains":                              {made(in(v1alpha1.MediaUploaded)), time.Minute},
		"with a key: at least as long as the key is valid":                              {made(in(v1alpha1.MediaUploaded), madeUnderKey), 24 * time.Hour},
		"a rejected file with a key: not longer, because a repeat is answered with 409": {made(in(v1alpha1.MediaRejected), madeUnderKey), time.Minute},
	} {
		if at, _ := deleteAt(tc.media, time.Minute, 0); !at.Equal(noon.Add(tc.want)) {
			t.Errorf("unused for a minute %s: deleted at %s", reason, at)
		}
	}
}
