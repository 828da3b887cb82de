// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

const (
	journalName    = "journal.jsonl"
	journalVersion = 1
	// compactAbove is the size in bytes below which a journal is left as it is: reading 4 MiB back takes well under a
	// second.
	compactAbove = 4 << 20
)

// errJournalBroken is what every change gets once a partly written line could not be taken back.
var errJournalBroken = errors.New("the journal could not be written and could not be repaired; restart the sandbox")

// journal is an append-only file of JSON lines. The zero value, without a file, keeps nothing.
type journal struct {
	mu     sync.Mutex
	file   *os.File
	size   int64
	broken bool
	closed bool
}

// replayed says what reading a journal back found.
type replayed struct {
	lines int   // whole lines
	size  int64 // bytes of whole lines
	torn  int64 // bytes after the last whole line, which a kill in the middle of a write leaves
}

// replay calls apply for each whole line of the journal in r.
func replay(r io.Reader, apply func(record) error) (replayed, error) {
	var (
		found replayed
		in    = newLineReader(r)
	)
	for {
		line, whole, err := in.next()
		if err != nil {
			return found, fmt.Errorf("read the journal after line %d: %w", found.lines, err)
		}
		if !whole {
			found.torn = int64(len(line))
			return found, nil
		}
		var rec record
		if err := decodeRecord(line, &rec); err != nil {
			return found, fmt.Errorf("journal line %d: %w", found.lines+1, err)
		}
		if err := apply(rec); err != nil {
			return found, fmt.Errorf("journal line %d: %w", found.lines+1, err)
		}
		found.lines++
		found.size += int64(len(line))
	}
}

func decodeRecord(line []byte, into *record) error {
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	return nil
}

// openJournal opens the file in dir for appending at offset size, dropping what lies behind it.
func openJournal(dir string, size int64) (*journal, error) {
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(size); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.Seek(size, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	j := &journal{file: file, size: size}
	if size == 0 {
		if err := j.append(record{Op: opJournal, Version: journalVersion}); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return j, nil
}

// append writes one record. When it returns without an error, the record has reached the kernel and survives the
// process.
func (j *journal) append(rec record) error {
	if j.file == nil {
		return nil
	}
	line, err := marshalRecord(rec)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return os.ErrClosed
	}
	if j.broken {
		return errJournalBroken
	}
	if _, err := j.file.Write(line); err != nil {
		return j.takeBack(err)
	}
	j.size += int64(len(line))
	return nil
}

// takeBack removes a partly written line, which would spoil the next one. Call it with the lock held.
func (j *journal) takeBack(cause error) error {
	_, seekErr := j.file.Seek(j.size, io.SeekStart)
	if err := errors.Join(j.file.Truncate(j.size), seekErr); err != nil {
		j.broken = true
		return errors.Join(cause, err)
	}
	return fmt.Errorf("write the journal: %w", cause)
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	return j.file.Close()
}

// writeSnapshot replaces the journal in dir by the given records, so that a crash leaves either the old or the new one.
func writeSnapshot(dir string, records []record) (int64, error) {
	var content bytes.Buffer
	for _, rec := range append([]record{{Op: opJournal, Version: journalVersion}}, records...) {
		line, err := marshalRecord(rec)
		if err != nil {
			return 0, err
		}
		content.Write(line)
	}
	temporary, err := os.CreateTemp(dir, journalName+".*")
	if err != nil {
		return 0, err
	}
	_, err = temporary.Write(content.Bytes())
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(dir, journalName))
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(temporary.Name()))
	}
	return int64(content.Len()), nil
}

func marshalRecord(rec record) ([]byte, error) {
	line, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("encode a journal record: %w", err)
	}
	return append(line, '\n'), nil
}
