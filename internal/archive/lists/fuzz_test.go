// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// FuzzDecode checks that no payload makes a reader panic, and that a decoded payload survives another round trip
// unchanged.
func FuzzDecode(f *testing.F) {
	known := newKinds()
	e := Entry{
		Kind: Kind{Status: v1alpha1.PhaseFailed, Category: v1alpha1.CategoryText, Agent: "a", Targets: []Target{
			{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseFailed}, {Platform: v1alpha1.PlatformFacebook, Status: v1alpha1.PhaseFailed, Mark: v1alpha1.MarkUndecided},
		}},
		Name: "p", UID: "12345678-1234-4234-8234-123456789abc", Title: "t", DisplayAt: time.UnixMilli(9), FinishedAt: time.UnixMilli(10), Bytes: 7,
	}
	row, err := rowOf(&e, known)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(encodeRows([]*Row{row})))
	f.Add(string(encodeNames([]*nameRow{row.name()})))
	chained := chain{{ID: ID{1}, First: row.SortKey, Count: 3, oldest: 9}}
	f.Add(string(encodeManifest(&manifest{lists: map[Filter]chain{{}: chained}, names: chained, obsolete: []obsolete{{ID{2}, time.UnixMilli(5)}}})))
	f.Fuzz(func(t *testing.T, payload string) {
		if rows, err := decodeRows(payload); err == nil {
			again, err := decodeRows(string(encodeRows(rows)))
			if diff := gocmp.Diff(rows, again, gocmp.AllowUnexported(Row{})); diff != "" || err != nil {
				t.Errorf("rows: %v\n%s", err, diff)
			}
		}
		if rows, err := decodeNames(payload); err == nil {
			if _, err := decodeNames(string(encodeNames(rows))); err != nil {
				t.Errorf("names: %v", err)
			}
		}
		if m, err := decodeManifest(payload); err == nil {
			if _, err := decodeManifest(string(encodeManifest(m))); err != nil {
				t.Errorf("manifest: %v", err)
			}
		}
	})
}

// TestMarks checks that lists preserve the mark of an undecided target, and that two posts that differ only in it have
// different kinds.
func TestMarks(t *testing.T) {
	t.Parallel()
	var rows []*Row
	known := newKinds()
	for i, mark := range []v1alpha1.TargetMark{v1alpha1.MarkUndecided, v1alpha1.MarkNone} {
		row, err := rowOf(&Entry{
			Kind: Kind{Status: v1alpha1.PhaseFailed, Targets: []Target{{v1alpha1.PlatformFacebook, v1alpha1.PhaseFailed, mark}}},
			Name: string(rune('a' + i)), UID: "x", DisplayAt: time.UnixMilli(9), FinishedAt: time.UnixMilli(9),
		}, known)
		must.Succeed(t, err)
		rows = append(rows, row)
	}
	got, err := decodeRows(string(encodeRows(rows)))
	must.Succeed(t, err)
	if diff := gocmp.Diff(rows, got, gocmp.AllowUnexported(Row{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUIDs(t *testing.T) {
	t.Parallel()
	for uid, packed := range map[string]int{
		"12345678-1234-4234-8234-123456789abc": 17, "12345678-1234-4234-8234-123456789ABC": 37, "x": 2, "123456789012345": 16, "0123456789abcdef": 17,
	} {
		if p := packUID(uid); unpackUID(p) != uid || len(p) != packed {
			t.Errorf("%q is stored as %q", uid, p)
		}
	}
}
