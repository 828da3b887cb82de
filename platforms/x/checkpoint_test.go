// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import "testing"

// FuzzPart checks that every accepted checkpoint of a part contains an upload and a valid number of segments, and is
// written back in the same form.
func FuzzPart(f *testing.F) {
	for _, checkpoint := range []string{"part:1991:3", "part::1", "part:1991:-1", "part:1991:99999999", "part:1/2:1", "1991"} {
		f.Add(checkpoint)
	}
	f.Fuzz(func(t *testing.T, checkpoint string) {
		found, ok := partOf(checkpoint)
		if !ok {
			return
		}
		if !validID(found.id) || found.segments < 1 || found.segments > maxSegments {
			t.Errorf("%q is taken as %+v", checkpoint, found)
		}
		if again, ok := partOf(found.checkpoint()); !ok || again != found {
			t.Errorf("%q is taken as %+v, and that as %+v", checkpoint, found, again)
		}
	})
}
