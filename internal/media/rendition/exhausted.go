// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import "fmt"

// ExhaustedError is returned for a file that needs more than Herald's limits allow. It is permanent: the store
// remembers it, and the file is not tried again.
type ExhaustedError struct {
	Of Resource
	// Err is the cause, for logs. It is nil if the error comes from an earlier attempt.
	Err error
}

// Resource is the exhausted resource.
type Resource string

// The resources that a file may exhaust.
const (
	// ResourceTime and ResourceMemory are limits of one process.
	ResourceTime   Resource = "time"
	ResourceMemory Resource = "memory"
	// ResourceCrash means that the file crashed its decoder.
	ResourceCrash Resource = "sense"
	// ResourceTries means that no attempt finished: the manager exited first, or the attempt timed out.
	ResourceTries Resource = "tries"
)

// maxTries limits the unfinished attempts for a file.
const maxTries = 3

// Error returns a message phrased to follow "the file".
func (e *ExhaustedError) Error() string {
	switch e.Of {
	case ResourceTime:
		return fmt.Sprintf("takes more than %.0f seconds of CPU time to decode", maxTime.Seconds())
	case ResourceMemory:
		return "takes more memory to decode than one file may use"
	case ResourceTries:
		return fmt.Sprintf("could not be converted in %d attempts, none of which finished", maxTries)
	case ResourceCrash:
	}
	return "crashes its decoder"
}

func (e *ExhaustedError) Unwrap() error { return e.Err }
