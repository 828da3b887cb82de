// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/herald-social/herald/internal/media/probe"
)

// Flags of tfhd and trun.
const (
	descriptionFlag, lastsFlag, sizeFlag, emptyFlag = 0x2, 0x8, 0x10, 0x10000
	offsetFlag, firstFlag, eachLasts, eachSize      = 0x1, 0x4, 0x100, 0x200
)

func TestProbeFragments(t *testing.T) {
	brand, frames := box("ftyp", "isom", words(0), "isom"), box("mdat", words(0))
	sound := trak(2, "soun", "", 1000, nil)
	// plain is ten samples with the default duration.
	plain := box("trun", words(0, 10))
	of := func(track uint32) []byte { return box("tfhd", words(0, track)) }
	for name, tc := range map[string]struct {
		why  string
		film movie
		// fragments follow the video.
		fragments []byte
		want      time.Duration
	}{
		"standard of the film": {
			"fragments of equal samples have no entry for each",
			movie{standard: 40},
			moof(of(1), plain), 400 * time.Millisecond,
		},
		"standard of the fragment": {
			"its default precedes the film's",
			movie{standard: 40},
			moof(box("tfhd", words(lastsFlag, 1, 50)), plain), 500 * time.Millisecond,
		},
		"fields in front": {
			"the default applies after all other values",
			movie{},
			moof(box("tfhd", words(descriptionFlag|lastsFlag|sizeFlag, 1, 7, 50, 9)), plain), 500 * time.Millisecond,
		},
		"an offset in front": {
			"the offset has two words",
			movie{},
			moof(box("tfhd", words(1|lastsFlag, 1, 0, 7, 50)), plain), 500 * time.Millisecond,
		},
		"each fragment alone": {
			"variable rates",
			movie{standard: 40},
			moof(of(1), box("trun", words(eachLasts, 3, 10, 20, 30))), 60 * time.Millisecond,
		},
		"each and more": {
			"other properties of a sample are skipped",
			movie{},
			moof(of(1), box("trun", words(offsetFlag|firstFlag|eachLasts|eachSize, 2, 7, 8, 100, 5000, 200, 5000))), 300 * time.Millisecond,
		},
		"several runs": {
			"Apple's tools write one for each group of frames",
			movie{standard: 40},
			moof(of(1), plain, plain, plain), 1200 * time.Millisecond,
		},
		"a track twice": {
			"a fragment may have several parts of a track",
			movie{standard: 40},
			box("moof", box("traf", of(1), plain), box("traf", of(1), plain)), 800 * time.Millisecond,
		},
		"sound behind": {
			"the last part of a fragment is not the picture's",
			movie{standard: 40, more: sound},
			box("moof", box("traf", of(1), plain), box("traf", box("tfhd", words(lastsFlag, 2, 20)), plain)), 400 * time.Millisecond,
		},
		"several fragments": {
			"the durations of the fragments add up",
			movie{standard: 40},
			join(moof(of(1), plain), frames, moof(of(1), plain)), 800 * time.Millisecond,
		},
		"a pause": {
			"a time without a picture is a part of the film",
			movie{standard: 40},
			join(moof(of(1), plain), moof(box("tfhd", words(lastsFlag|emptyFlag, 1, 600)))), time.Second,
		},
		"more than 32 bits": {
			"Smooth Streaming counts ten million in a second",
			movie{scale: 10_000_000},
			moof(box("tfhd", words(lastsFlag, 1, 400_000)), box("trun", words(0, 25*600))), 10 * time.Minute,
		},
		"more than 32 bits, each": {
			"the same with a value for each sample",
			movie{scale: 4_000_000_000},
			moof(of(1), box("trun", words(eachLasts, 2, 4_000_000_000, 4_000_000_000))), 2 * time.Second,
		},
		"a beginning": {
			"the film's header may describe samples before the fragments",
			movie{duration: 1000, table: box("stts", words(0, 1, 25, 40)), standard: 40},
			moof(of(1), plain), 1400 * time.Millisecond,
		},
		"a default": {"the default of all tracks", movie{duration: 400, standard: 40}, moof(of(1), plain), 400 * time.Millisecond},
		"its own place": {
			"a declared duration of fragments is the author's",
			movie{duration: 100, whole: 390, standard: 40},
			moof(of(1), plain), 390 * time.Millisecond,
		},
		"an index alone": {
			"the index declares the duration of its segments",
			movie{},
			join(box("sidx", words(0, 1, 1000, 0, 0, 2, 100, 700, 0, 100, 800, 0)), box("moof")), 1500 * time.Millisecond,
		},
		"an index of 64 bits": {
			"the index has version 1 and refers to another index",
			movie{},
			join(box("sidx", words(1<<24, 1, 1000, 0, 0, 0, 0, 2, 100, 700, 0, 1<<31|100, 800, 0)), box("moof")), 700 * time.Millisecond,
		},
		"films put together": {
			"each brings a description, and players go by the first",
			movie{standard: 40},
			join(moof(of(1), plain), moov(movie{duration: 9000}), moof(of(1), plain)), 800 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := probe.Facts{MIMEType: mp4Type, Width: 64, Height: 48, Duration: tc.want}
			for place, data := range map[string][]byte{
				"first": join(brand, moov(tc.film), tc.fragments, frames),
				"last":  join(brand, tc.fragments, frames, moov(tc.film)),
			} {
				if bytes.Contains(tc.fragments, []byte("moov")) && place == "last" {
					continue // It would be the first of another video.
				}
				got, err := probe.Probe(bytes.NewReader(data), int64(len(data)), mp4Type)
				if err != nil {
					t.Fatalf("%s (moov %s): %v", tc.why, place, err)
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(probe.Facts{}, "FrameRate", "FrameRateVaries")); diff != "" {
					t.Errorf("%s (moov %s, -want +got):\n%s", tc.why, place, diff)
				}
			}
		})
	}
}

func TestProbeRefusesStructures(t *testing.T) {
	const all = 0xffffffff
	brand, frames := box("ftyp", "isom", words(0), "isom"), box("mdat", words(0))
	film := func(parts ...any) []byte { return join(brand, moov(movie{standard: 40}), join(parts...), frames) }
	for name, tc := range map[string]struct {
		why  string
		data []byte
		says string
	}{
		"without end": {"a fragment of some months is a lie", film(moof(box("tfhd", words(lastsFlag, 1, all)), box("trun", words(0, all)))), "30 days"},
		"without end, repeated": {"sums must not overflow to a small number", film(bytes.Repeat(
			moof(box("tfhd", words(lastsFlag, 1, all)), box("trun", words(0, all))), 3)), "30 days"},
		"samples missing":  {"a run that ends before its samples", film(moof(box("tfhd", words(0, 1)), box("trun", words(eachLasts, 3, 40, 40)))), "shorter than its required fields"},
		"table missing":    {"the same of the table", join(brand, moov(movie{table: box("stts", words(0, 2, 1, 1))}), box("moof"), frames), "shorter than its required fields"},
		"index missing":    {"the same of an index", film(box("sidx", words(0, 1, 1000, 0, 0, 2, 100, 700, 0))), "shorter than its required fields"},
		"no header":        {"samples of no track", film(moof(box("trun", words(0, 10)))), "start with its track"},
		"short header":     {"a standard that is not there", film(moof(box("tfhd", words(lastsFlag, 1)))), "shorter than its required fields"},
		"short film":       {"a film whose header is too short", join(brand, box("moov", box("mvhd", words(0, 0))), frames), "shorter than its required fields"},
		"another version":  {"its format is unknown", join(brand, box("moov", box("mvhd", words(2<<24, 0, 0, 0, 0, 0, 0, 0))), frames), "version"},
		"too many tracks":  {"no camera records a thousand tracks", join(brand, box("moov", bytes.Repeat(box("trak"), 1000)), frames), "too many tracks"},
		"too many parts":   {"a film does not have a million boxes", film(bytes.Repeat(box("free"), 1_100_000)), "too many parts"},
		"beyond its place": {"a part that is longer than its container", join(brand, box("moov", words(64), "trak"), frames, make([]byte, 64)), "the one it belongs to"},
		"no size":          {"a part that ends before its header", film(words(4), "free"), "shorter than its own header"},
		"no long size":     {"a size of 64 bits that is not there", join(brand, box("moov", words(1), "trak"), frames), "shorter than its own header"},
		"beyond all":       {"a size that no file has", film(words(1), "free", words(all, all)), "cut off"},
		"a film in a film": {"a box in the wrong place is ignored", join(brand, box("moov", moov(movie{duration: 1000})), frames), "no video track"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := probe.Probe(bytes.NewReader(tc.data), int64(len(tc.data)), mp4Type)
			var problem *probe.InvalidFileError
			if !errors.As(err, &problem) || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("%s: got %+v, %v", tc.why, facts, err)
			}
		})
	}
}
