// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strconv"
	"time"
)

const (
	// snowflakeEpoch is the origin of the times in X's ids, in milliseconds
	// of Unix time.
	snowflakeEpoch = 1288834974657
	// snowflakeShift is how many low bits of an id are not time.
	snowflakeShift = 22
)

// snowflakeTime returns when the post with this id was created, to the
// millisecond; false if the id is not one of X's.
func snowflakeTime(id string) (time.Time, bool) {
	n, err := strconv.ParseUint(id, 10, 63)
	if err != nil || n>>snowflakeShift == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(n>>snowflakeShift) + snowflakeEpoch).UTC(), true
}

// idBefore returns the greatest id that is older than every post created at t
// or later, in the form of the parameter since_id; "" if no id can say it.
func idBefore(t time.Time) string {
	ms := t.UnixMilli() - snowflakeEpoch
	if ms <= 0 || ms >= 1<<(63-snowflakeShift) {
		return ""
	}
	return strconv.FormatInt(ms<<snowflakeShift-1, 10)
}
