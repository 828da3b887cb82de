// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"errors"
	"io/fs"
	"os"
)

// Truncate takes back what an upload has beyond a size that it had: a chunk that was written and, because of a kill, never
// acknowledged. An upload that is not that long stays as it is.
func (s *Store) Truncate(id string, size int64) error {
	unlock := s.lock(id)
	defer unlock()
	path := s.partial(fileName(id))
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrUnknown
	}
	if err != nil || info.Size() <= size {
		return err
	}
	return os.Truncate(path, size)
}
