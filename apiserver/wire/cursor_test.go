// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/apiserver/postindex"
)

func TestCursors(t *testing.T) {
	t.Parallel()
	for _, want := range []*postindex.Cursor{
		{ID: "p1", DisplayAt: time.UnixMilli(1764547200123)},
		{ID: "a.b.c", DisplayAt: time.UnixMilli(-5), Back: true},
		{ID: strings.Repeat("a", maxName), DisplayAt: time.UnixMilli(1 << 62)},
	} {
		got, ok := ParseCursor(formatCursor(want))
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%v: %s", ok, diff)
		}
	}
	for reason, encoded := range map[string]string{
		"nothing": "", "no base64": "!", "padded": "YTEucA==", "no direction": "MS5w", "no id": "YTEu", "no time": "YXgucA", "too long": strings.Repeat("YTEucA", 100),
	} {
		if got, ok := ParseCursor(encoded); ok {
			t.Errorf("%s: %q is read as %+v", reason, encoded, got)
		}
	}
}

// FuzzParseCursor verifies that a cursor from a client is rejected, or is one that formatCursor returns.
func FuzzParseCursor(f *testing.F) {
	f.Add(formatCursor(&postindex.Cursor{ID: "p1", DisplayAt: time.UnixMilli(5)}))
	f.Add("YTEucA")
	f.Fuzz(func(t *testing.T, encoded string) {
		c, ok := ParseCursor(encoded)
		if !ok {
			return
		}
		if again, ok := ParseCursor(formatCursor(c)); !ok || !cmp.Equal(c, again) {
			t.Errorf("%q: %+v becomes %+v", encoded, c, again)
		}
	})
}
