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

// Stamp orders all objects of the sandbox by a millisecond and a serial number within it. Later stamps are always
// greater, even if the clock stops or goes back.
type Stamp struct {
	// Milli is a Unix time in milliseconds.
	Milli int64 `json:"ms"`
	// Serial counts from 0 within the millisecond.
	Serial int64 `json:"n,omitempty"`
}

// Time returns the stamp's time in UTC, to the millisecond.
func (s Stamp) Time() time.Time { return time.UnixMilli(s.Milli).UTC() }

// Compare returns a negative number if s is before other, 0 if they are equal, and a positive number otherwise.
func (s Stamp) Compare(other Stamp) int {
	return cmp.Or(cmp.Compare(s.Milli, other.Milli), cmp.Compare(s.Serial, other.Serial))
}

// String returns the stamp in the format of ParseStamp.
func (s Stamp) String() string { return fmt.Sprintf("%d.%d", s.Milli, s.Serial) }

// ParseStamp is the inverse of String.
func ParseStamp(text string) (Stamp, bool) {
	milli, serial, found := strings.Cut(text, ".")
	ms, errMilli := strconv.ParseInt(milli, 10, 64)
	n, errSerial := strconv.ParseInt(serial, 10, 64)
	return Stamp{Milli: ms, Serial: n}, found && errMilli == nil && errSerial == nil
}

// key returns the stamp as a database key that sorts in the order of stamps.
func (s Stamp) key() string { return fmt.Sprintf("%016x.%016x", s.Milli, s.Serial) }

// stamp returns a new stamp: the current time, or the successor of the last stamp if the time is not later. The
// caller holds the lock.
func (s *Store) stamp() Stamp {
	if ms := s.clock.Now().UnixMilli(); ms > s.last.Milli {
		s.last = Stamp{Milli: ms}
	} else {
		s.last.Serial++
	}
	return s.last
}

// seen ensures that all later stamps are greater than at.
func (s *Store) seen(at Stamp) {
	if at.Compare(s.last) > 0 {
		s.last = at
	}
}
