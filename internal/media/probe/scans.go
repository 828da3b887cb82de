// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"io"
)

// ErrScans is returned for a JPEG with too many scans.
var ErrScans = errors.New("the JPEG has too many scans")

// Scans copies a JPEG and counts its scans. Each is a pass over the whole picture that takes a decoder as long as the
// first, even if it has only a few bytes (ITU-T T.81, section B.2.3). Reads fail with ErrScans after more than Most
// scans.
type Scans struct {
	From io.Reader
	Most int

	// begun counts the scans. last is the previous byte, and skip is the number of remaining bytes of a part. length is
	// the number of unread bytes of a part's length field, and first is that field's first byte.
	begun  int
	last   byte
	skip   int
	length int
	first  byte
}

// Read implements io.Reader.
func (s *Scans) Read(p []byte) (int, error) {
	if s.begun > s.Most {
		return 0, ErrScans
	}
	n, err := s.From.Read(p)
	for i, b := range p[:n] {
		s.next(b)
		if s.begun > s.Most {
			return i, ErrScans
		}
	}
	return n, err
}

func (s *Scans) next(b byte) {
	const itself = 2 // The length includes its own two bytes.
	switch {
	case s.length == itself:
		s.first, s.length = b, 1
	case s.length == 1:
		s.skip, s.length = max(int(s.first)<<8|int(b), itself)-itself, 0
	case s.skip > 0:
		s.skip--
	case s.last == jpegMark && b != jpegMark && b != jpegStuffed:
		s.last = 0
		if b == jpegSOS {
			s.begun++
		}
		if alone := b == jpegTEM || b >= jpegRST0 && b <= jpegEOI; !alone {
			s.length = itself
		}
	default:
		s.last = b
	}
}
