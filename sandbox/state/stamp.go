// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stamp orders everything that the sandbox creates: a millisecond, and a number within that millisecond. Later stamps
// are always greater, also when the clock stands still or goes back.
type Stamp struct {
	// Milli is a Unix time in milliseconds.
	Milli int64 `json:"ms"`
	// Serial counts from 0 within the millisecond.
	Serial int64 `json:"n,omitempty"`
}

// Time is the stamp's instant, in UTC, to the millisecond.
func (s Stamp) Time() time.Time { return time.UnixMilli(s.Milli).UTC() }

// Compare returns a negative number when s is before other, 0 when they are the same, a positive one otherwise.
func (s Stamp) Compare(other Stamp) int {
	return cmp.Or(cmp.Compare(s.Milli, other.Milli), cmp.Compare(s.Serial, other.Serial))
}

// String is the stamp as ParseStamp reads it.
func (s Stamp) String() string { return fmt.Sprintf("%d.%d", s.Milli, s.Serial) }

// ParseStamp is the inverse of String.
func ParseStamp(text string) (Stamp, bool) {
	milli, serial, found := strings.Cut(text, ".")
	ms, errMilli := strconv.ParseInt(milli, 10, 64)
	n, errSerial := strconv.ParseInt(serial, 10, 64)
	return Stamp{Milli: ms, Serial: n}, found && errMilli == nil && errSerial == nil
}

// key is the stamp as a key of the database, which sorts as stamps do.
func (s Stamp) key() string { return fmt.Sprintf("%016x.%016x", s.Milli, s.Serial) }

// stamp returns a new stamp: now, or just after the last one when that is not earlier. Call it with the lock held.
func (s *Store) stamp() Stamp {
	if ms := s.clock.Now().UnixMilli(); ms > s.last.Milli {
		s.last = Stamp{Milli: ms}
	} else {
		s.last.Serial++
	}
	return s.last
}

// seen makes sure that no later stamp is at or before at.
func (s *Store) seen(at Stamp) {
	if at.Compare(s.last) > 0 {
		s.last = at
	}
}
