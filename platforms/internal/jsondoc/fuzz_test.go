// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"strings"
	"testing"
	"time"
)

// FuzzDecode checks that any input is either decoded or rejected, and that numbers stay within plausible limits.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"id":1991000000000000001,"in":"3600"}`, `{"id":{},"in":[1],"list":"x"}`, `{"in":1e308}`, `{"in":-1,"list":[1,"a",null]}`, `[]`, `{}{}`, "\xff"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read, ok := Decode[struct {
			ID   Text   `json:"id"`
			In   Text   `json:"in"`
			List []Text `json:"list"`
		}]([]byte(body))
		if !ok && (read.ID != "" || read.In != "" || read.List != nil) {
			t.Errorf("%q is not read, and read as %+v", body, read)
		}
		if life := read.In.Seconds(); life < 0 || life > 10*365*24*time.Hour {
			t.Errorf("%q lasts %s", read.In, life)
		}
		if ok && !strings.Contains(body, "{") {
			t.Errorf("%q is no object", body)
		}
	})
}
