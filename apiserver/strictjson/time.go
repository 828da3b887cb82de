// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"regexp"
	"strings"
	"time"
)

// rfc3339 is the grammar of RFC 3339, section 5.6, where T and Z may be lower case. The parser of package time also
// accepts a comma, a one-digit hour and an offset of more than a day.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime parses a time in RFC 3339 format. A leap second is valid only before midnight UTC at the end of a month (RFC 3339, appendix D);
// it becomes the following second.
func ParseTime(text string) (t time.Time, ok bool) {
	text = strings.ToUpper(text)
	found := rfc3339.FindStringSubmatch(text)
	if found == nil {
		return t, false
	}
	leap := found[2] == "60"
	if leap {
		const seconds = len("2006-01-02T15:04:")
		text = text[:seconds] + "59" + text[seconds+2:]
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, false
	}
	if leap {
		t = t.Add(time.Second)
		next := t.UTC().Truncate(time.Second)
		return t, next.Day() == 1 && next.Truncate(24*time.Hour).Equal(next)
	}
	return t, true
}
