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
		"new from the API":            {"its client has an address", made(fromTheAPI), 0, false, false},
		"API, in its grace":           {"an upload that began in time goes on", made(fromTheAPI), 74 * time.Minute, false, false},
		"API, after its grace":        {"15 minutes and an hour", made(fromTheAPI), 75 * time.Minute, true, false},
		"API, a second address":       {"it is awaited as long as the last address", made(fromTheAPI, handedOut("2026-11-20T20:15:00Z")), 9 * time.Hour, false, false},
		"API, a second address ended": {"and its grace", made(fromTheAPI, handedOut("2026-11-20T20:15:00Z")), 9*time.Hour + 15*time.Minute, true, false},
		"API, an earlier address":     {"never shorter than the first", made(fromTheAPI, handedOut("2026-11-20T12:00:00Z")), 74 * time.Minute, false, false},
		"API, nonsense":               {"what cannot be read does not count", made(fromTheAPI, handedOut("for ever")), 75 * time.Minute, true, false},
		"API, under a key":            {"the same request asks for a fresh address within a day", made(fromTheAPI, madeUnderKey), 24 * time.Hour, false, false},
		"API, under a key, a day old": {"and its grace", made(fromTheAPI, madeUnderKey), 25 * time.Hour, true, false},
		"API, key and late address":   {"whichever ends later", made(fromTheAPI, madeUnderKey, handedOut("2026-11-21T12:10:00Z")), 25*time.Hour + 9*time.Minute, false, false},
		"new from kubectl":            {"it needs an address", made(), 0, false, true},
		"a fresh address":             {"it is good for a while", made(offered(15 * time.Minute)), 0, false, false},
		"five minutes left":           {"enough to begin", made(offered(15 * time.Minute)), 10 * time.Minute, false, false},
		"less left":                   {"somebody may just be reading it", made(offered(15 * time.Minute)), 10*time.Minute + time.Second, false, true},
		"ended":                       {"the manager was away", made(offered(15 * time.Minute)), time.Hour, false, true},
		"after a day":                 {"no fresh address any more", made(offered(15 * time.Minute)), 24 * time.Hour, false, false},
		"after a day and an hour":     {"nor any wait", made(offered(15 * time.Minute)), 25 * time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := planUpload(tc.media, 24*time.Hour, noon.Add(tc.at))
			if got.expired != tc.expired || got.offer != tc.offer {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if !got.expired && got.recheckAfter <= 0 {
				t.Errorf("%s: it is never looked at again", tc.reason)
			}
		})
	}
}

// Waiting ends at the deadline, not a pause later.
func TestAwaitEndsInTime(t *testing.T) {
	got := planUpload(made(fromTheAPI), 24*time.Hour, noon.Add(75*time.Minute-time.Second))
	if got.recheckAfter != time.Second {
		t.Errorf("looks again after %s", got.recheckAfter)
	}
}

func TestPauses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		pause     func(time.Duration) time.Duration
		after     time.Duration
		low, high time.Duration
	}{
		"poll at once":      {"the shortest", func(d time.Duration) time.Duration { return pollPause(d, "u") }, 0, 1800 * time.Millisecond, 2200 * time.Millisecond},
		"poll after 4 min":  {"an eighth", func(d time.Duration) time.Duration { return pollPause(d, "u") }, 4 * time.Minute, 27 * time.Second, 33 * time.Second},
		"poll after a day":  {"the longest", func(d time.Duration) time.Duration { return pollPause(d, "u") }, 24 * time.Hour, 270 * time.Second, 330 * time.Second},
		"poll before":       {"clocks differ", func(d time.Duration) time.Duration { return pollPause(d, "u") }, -time.Minute, 1800 * time.Millisecond, 2200 * time.Millisecond},
		"fetch at once":     {"the shortest", func(d time.Duration) time.Duration { return fetchPause(d, "u") }, 0, 4500 * time.Millisecond, 5500 * time.Millisecond},
		"fetch after 4 min": {"a quarter", func(d time.Duration) time.Duration { return fetchPause(d, "u") }, 4 * time.Minute, 54 * time.Second, 66 * time.Second},
		"fetch after a day": {"the longest", func(d time.Duration) time.Duration { return fetchPause(d, "u") }, 24 * time.Hour, 9 * time.Minute, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.pause(tc.after); got < tc.low || got > tc.high {
				t.Errorf("%s, give or take a tenth: got %s", tc.reason, got)
			}
		})
	}
	if pollPause(time.Minute, "a") == pollPause(time.Minute, "b") {
		t.Error("two files are asked for at the same time")
	}
}

func TestLookAgain(t *testing.T) {
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
		"just verified":    {"an address may still be valid", made(ready), 0, false, 16 * time.Minute},
		"address ended":    {"now nobody can overwrite it", made(ready), 16 * time.Minute, true, 0},
		"a little later":   {"the manager was busy", made(ready), 30 * time.Minute, true, 0},
		"long ago":         {"the sweep has seen it", made(ready), 2 * time.Hour, false, 0},
		"API":              {"the address counts from when it was asked for", made(fromTheAPI, readyAt(5*time.Minute)), 10 * time.Minute, false, 6 * time.Minute},
		"API, ended":       {"its only address has ended", made(fromTheAPI, readyAt(5*time.Minute)), 16 * time.Minute, true, 0},
		"API, asked again": {"a second address was handed out after the file was verified", made(fromTheAPI, ready, handedOut("2026-11-20T12:35:00Z")), 20 * time.Minute, false, 16 * time.Minute},
		"API, both ended":  {"now neither address is good", made(fromTheAPI, ready, handedOut("2026-11-20T12:35:00Z")), 36 * time.Minute, true, 0},
		"API, much later":  {"the second address came after a day", made(fromTheAPI, ready, handedOut("2026-11-21T12:15:00Z")), 24*time.Hour + 16*time.Minute, true, 0},
		"fetched":          {"there never was an address", made(ready, fromSource("https://a.example")), 16 * time.Minute, false, 0},
		"without a status": {"it is not known since when", made(), 16 * time.Minute, false, 0},
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
		"uploaded":                {"a day", made(in(v1alpha1.MediaUploaded)), ttl, 24 * time.Hour},
		"expired":                 {"a day", made(in(v1alpha1.MediaExpired)), ttl, 24 * time.Hour},
		"rejected":                {"its owner can read why for as long as other ends", made(in(v1alpha1.MediaRejected)), ttl, ttl},
		"rejected, ends not kept": {"never shorter than a day", made(in(v1alpha1.MediaRejected)), 0, 24 * time.Hour},
		"pending":                 {"it is awaited", made(in(v1alpha1.MediaPending)), ttl, 0},
		"used":                    {"a post refers to it", made(in(v1alpha1.MediaUploaded), used), ttl, 0},
		"to be kept":              {"its owner says so", made(in(v1alpha1.MediaUploaded), when(v1alpha1.KeepWhenUnused)), ttl, 0},
		"from a source":           {"whoever declared it would only declare it again", made(in(v1alpha1.MediaUploaded), source), ttl, 0},
		"from a source, to go":    {"its owner says so", made(in(v1alpha1.MediaUploaded), source, when(v1alpha1.DeleteWhenUnused)), ttl, 24 * time.Hour},
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
		"without a key, as long as the manager is told":        {made(in(v1alpha1.MediaUploaded)), time.Minute},
		"under a key, as long as that holds, all the same":     {made(in(v1alpha1.MediaUploaded), madeUnderKey), 24 * time.Hour},
		"and no longer for a file that was refused: it is 409": {made(in(v1alpha1.MediaRejected), madeUnderKey), time.Minute},
	} {
		if at, _ := deleteAt(tc.media, time.Minute, 0); !at.Equal(noon.Add(tc.want)) {
			t.Errorf("unused for a minute %s: goes at %s", reason, at)
		}
	}
}
