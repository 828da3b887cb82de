// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"strings"
	"testing"
)

// Whatever stands in the annotation: an id that is taken cannot be anything but an id, in an address as in a log.
func FuzzResolutions(f *testing.F) {
	for _, value := range []string{"0=posted:1991", "0=not-sent, 1=posted:a_b", "0=posted:ID", "-1=not-sent", "99999999999=not-sent", "0=posted:https://x.com/1", "=,=", ""} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		verdicts, err := ParseResolutions(value)
		if err != nil {
			if verdicts != nil {
				t.Errorf("%q is refused, and taken as %+v", value, verdicts)
			}
			return
		}
		if len(verdicts) != strings.Count(value, ",")+1 {
			t.Errorf("%q has %d verdicts", value, len(verdicts))
		}
		for _, v := range verdicts {
			if v.Index < 0 || len(v.ExternalID) > longestID || strings.ContainsAny(v.ExternalID, "/?#%&=\"'<> \r\n\t,\\") || v.ExternalID == idPlaceholder {
				t.Errorf("%q is taken as %+v", value, v)
			}
		}
	})
}
