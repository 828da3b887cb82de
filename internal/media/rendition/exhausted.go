// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import "fmt"

// ExhaustedError is returned for a file that is too much for Herald. It is so for good: the
// store remembers it, and the file is not tried again.
type ExhaustedError struct {
	Of Resource
	// Err is the cause, for logs; nil if it was found out before.
	Err error
}

// Resource is what a file used up.
type Resource string

// What a file may use up.
const (
	// ResourceTime and ResourceMemory are those of one process.
	ResourceTime   Resource = "time"
	ResourceMemory Resource = "memory"
	// ResourceCrash says that the file crashed what decoded it.
	ResourceCrash Resource = "sense"
	// ResourceTries says that work on it was begun as often as it may be and never came to
	// an end: the manager ended first, or time was over.
	ResourceTries Resource = "tries"
)

// mostTries is how often work on a file is begun without an end.
const mostTries = 3

// Error continues "the file …".
func (e *ExhaustedError) Error() string {
	switch e.Of {
	case ResourceTime:
		return fmt.Sprintf("takes more than %.0f seconds of a processor to be decoded", mostTime.Seconds())
	case ResourceMemory:
		return "takes more memory to be decoded than one file gets"
	case ResourceTries:
		return fmt.Sprintf("was begun %d times, and its conversion never came to an end", mostTries)
	case ResourceCrash:
	}
	return "crashes what decodes it"
}

func (e *ExhaustedError) Unwrap() error { return e.Err }
