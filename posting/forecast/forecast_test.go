// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// upload returns an upload of a team that can start at once. due and takes are in minutes.
func upload(team string, due, takes int, change ...func(*Upload)) Upload {
	u := Upload{Team: team, Due: now.Add(time.Duration(due) * time.Minute), From: now, Duration: time.Duration(takes) * time.Minute}
	for _, c := range change {
		c(&u)
	}
	return u
}

func underWay(u *Upload) { u.UnderWay = true }

func from(minutes int) func(*Upload) {
	return func(u *Upload) { u.From = now.Add(time.Duration(minutes) * time.Minute) }
}

// many returns n equal uploads.
func many(n int, u Upload) (all []Upload) {
	for range n {
		all = append(all, u)
	}
	return all
}

func TestLate(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		uploads []Upload
		places  int
		want    []bool
	}{
		{"the forecast has no uploads", nil, 4, []bool{}},
		{"the upload ends in time", []Upload{upload("a", 10, 9)}, 4, []bool{false}},
		{"the upload ends when the post is due", []Upload{upload("a", 10, 10)}, 4, []bool{false}},
		{"one upload exceeds the time", []Upload{upload("a", 10, 11)}, 4, []bool{true}},
		{"its time has passed", []Upload{upload("a", -1, 1)}, 4, []bool{true}},
		{"the upload cannot start earlier", []Upload{upload("a", 30, 10, from(25))}, 4, []bool{true}},
		{"a team has half of the places: the third waits", many(3, upload("a", 10, 9)), 4, []bool{false, false, true}},
		{"the earlier post is uploaded first", []Upload{upload("a", 60, 20), upload("a", 20, 20)}, 2, []bool{false, false}},
		{"the earlier post delays the later one", []Upload{upload("a", 30, 20), upload("a", 20, 20)}, 2, []bool{true, false}},
		{
			"an upload in progress keeps its slot",
			[]Upload{upload("a", 90, 15, underWay), upload("a", 20, 10)},
			2,
			[]bool{false, true},
		},
		{
			"a later upload does not delay earlier ones",
			[]Upload{upload("a", 15, 10), upload("a", 12, 5, from(11))},
			2,
			[]bool{false, true},
		},
		{
			"another team has its own slot",
			[]Upload{upload("a", 60, 50, underWay), upload("a", 70, 10), upload("b", 11, 10)},
			2,
			[]bool{false, false, false},
		},
		{
			"with two teams each has a third of six places", append(many(3, upload("a", 10, 9)), many(3, upload("b", 10, 9))...), 6,
			[]bool{false, false, true, false, false, true},
		},
		{
			"more teams than places have one each, up to twice the places",
			[]Upload{upload("a", 10, 9), upload("b", 10, 9), upload("c", 10, 9)},
			1,
			[]bool{false, false, true},
		},
		{
			"an upload may start after later ones in the list",
			[]Upload{upload("a", 40, 10, from(20)), upload("a", 15, 10)},
			2,
			[]bool{false, false},
		},
		{
			"a team without uploads leaves its share to the others",
			append(many(3, upload("a", 12, 10)), upload("b", 5, 1)), 6,
			[]bool{false, false, false, false},
		},
		{
			"a team keeps its share while one of its uploads is in progress",
			[]Upload{upload("a", 60, 1, underWay), upload("a", 60, 60, underWay), upload("b", 15, 10), upload("b", 15, 10)},
			4,
			[]bool{false, false, false, true},
		},
		{"the process has no slots", []Upload{upload("a", 10, 9)}, 0, []bool{false}},
	} {
		if diff := cmp.Diff(tt.want, Late(tt.uploads, tt.places, 1, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// TestLateInTheMorning covers the forecast's main purpose: 100 MiB videos for nine o'clock, at 8 MiB/s each. One team
// has 16 of 32 slots, and uploads start 32 minutes early, so one slot fits 153 of them.
func TestLateInTheMorning(t *testing.T) {
	for _, tt := range []struct {
		reason                 string
		videos, managers, late int
	}{
		{"all fit", 2400, 1, 0},
		{"the uploads beyond the capacity are late", 3600, 1, 3600 - 16*153},
		{"they fit if two managers share them", 3600, 2, 0},
		{"even two managers have a capacity", 6000, 2, 6000 - 2*16*153},
		{"the number of managers is not configured: the leader alone counts", 3600, 0, 3600 - 16*153},
	} {
		video := upload("acme", 60, 0, from(28))
		video.Duration = TransferTime(100<<20, 8<<20)
		n := 0
		for _, late := range Late(many(tt.videos, video), 32, tt.managers, now) {
			if late {
				n++
			}
		}
		if n != tt.late {
			t.Errorf("%s: %d of %d are late, want %d", tt.reason, n, tt.videos, tt.late)
		}
	}
}

// TestLateOfManagers covers the limits of several managers, which each have their own slots.
func TestLateOfManagers(t *testing.T) {
	three := []Upload{upload("a", 10, 9), upload("b", 10, 9), upload("c", 10, 9)}
	for _, tt := range []struct {
		reason           string
		uploads          []Upload
		places, managers int
		want             []bool
	}{
		{"a team has half of the places of each", many(5, upload("a", 10, 9)), 4, 2, []bool{false, false, false, false, true}},
		{"more teams than places have one each, up to twice the places of each", three, 1, 2, []bool{false, false, false}},
		{"a share is rounded down in each process", many(3, upload("a", 10, 9)), 3, 2, []bool{false, false, true}},
		{"another manager's upload keeps its slot", []Upload{upload("a", 90, 15, underWay), upload("a", 19, 10), upload("a", 19, 10)}, 2, 2, []bool{false, false, true}},
	} {
		if diff := cmp.Diff(tt.want, Late(tt.uploads, tt.places, tt.managers, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestPace(t *testing.T) {
	type ended struct {
		bytes   int64
		took    time.Duration
		minutes int
	}
	kind := Kind{Platform: "youtube", Video: true}
	for _, tt := range []struct {
		reason string
		ended  []ended
		want   map[Kind]float64
	}{
		{"the forecast has no measurements", nil, map[Kind]float64{}},
		{"the only measurement", []ended{{1000, 10 * time.Second, 0}}, map[Kind]float64{kind: 100}},
		{"measurements are weighted by duration", []ended{{1000, 10 * time.Second, 0}, {9000, 10 * time.Second, 0}}, map[Kind]float64{kind: 500}},
		{"an old one counts for less", []ended{{1000, 10 * time.Second, 0}, {2000, 10 * time.Second, 15}}, map[Kind]float64{kind: 2500.0 / 15}},
		{"an empty upload is ignored", []ended{{0, time.Second, 0}}, map[Kind]float64{}},
		{"an instant upload is ignored", []ended{{1000, 0, 0}}, map[Kind]float64{}},
	} {
		var p Pace
		for _, e := range tt.ended {
			p.Observe(kind, e.bytes, e.took, now.Add(time.Duration(e.minutes)*time.Minute))
		}
		if diff := cmp.Diff(tt.want, p.Rates()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestRemaining(t *testing.T) {
	const rate = 100
	for _, tt := range []struct {
		reason      string
		bytes, sent int64
		elapsed     time.Duration
		want        time.Duration
	}{
		{"the upload has just started", 1000, 0, 0, 10 * time.Second},
		{"the platform fetches it, and is expected to be half through", 1000, 0, 5 * time.Second, 5 * time.Second},
		{"the platform downloads slowly", 1000, 0, 30 * time.Second, 30 * time.Second},
		{"the platform fetches it, and should be done", 1000, 0, 10 * time.Second, 10 * time.Second},
		{"half is sent at the usual rate", 1000, 500, 5 * time.Second, 5 * time.Second},
		{"half is sent at a lower rate", 1000, 500, 20 * time.Second, 20 * time.Second},
		{"half is sent at a higher rate", 1000, 500, time.Second, 5 * time.Second},
		{"a part was sent twice", 1000, 1200, 20 * time.Second, 0},
		{"the upload hardly progresses", 1 << 40, 1, time.Hour, longest},
	} {
		if got := Remaining(tt.bytes, tt.sent, tt.elapsed, rate); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
		}
	}
}
