// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blobs stores the files received by the simulated platforms, on disk and by hash. Tests compare them with the
// sent files, and pages show them. A video may be a gigabyte in size, so files are never held in memory.
package blobs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// The errors that a simulator distinguishes.
var (
	// ErrTooLarge is returned for a file over the limit.
	ErrTooLarge = errors.New("the file is too large")
	// ErrOffset is returned for a chunk that does not start at the end of the previous one.
	ErrOffset = errors.New("the chunk does not begin where the one before it ended")
	// ErrUnknown is returned for a nonexistent upload.
	ErrUnknown = errors.New("no such upload")
)

// Blob is a completely received file.
type Blob struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// MIMEType is the type detected from the content.
	MIMEType string `json:"mime_type"`
	// Width and Height are an image's stored size or a video's displayed size, in pixels; zero if unknown.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Duration is a video's duration; zero if unknown.
	Duration time.Duration `json:"duration,omitempty"`
	// FrameRate is a video's frames per second. VideoCodec and AudioCodec are ffmpeg's codec names. All three are empty if ffprobe is not
	// installed or cannot detect them.
	FrameRate  float64 `json:"frame_rate,omitempty"`
	VideoCodec string  `json:"video_codec,omitempty"`
	AudioCodec string  `json:"audio_codec,omitempty"`
}

// Store is a directory of files. It is safe for concurrent use; calls for the same upload are serialized.
type Store struct {
	dir        string
	temporary  bool
	background background
	busy       sync.Map // a mutex for each upload
}

// Open returns the store in a directory, created if missing. Without a directory, Close removes the files.
func Open(dir string) (*Store, error) {
	closing, cancel := context.WithCancel(context.Background())
	s := &Store{dir: dir, background: background{closing: closing, cancel: cancel}}
	if dir == "" {
		temporary, err := os.MkdirTemp("", "herald-sandbox-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for received files: %w", err)
		}
		s.dir, s.temporary = temporary, true
	}
	if err := s.makeFolders(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) makeFolders() error {
	for _, folder := range []string{s.partial(""), s.whole("")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make a folder for received files: %w", err)
		}
	}
	return nil
}

// Close stops the background pulls. Without a directory, it removes the files.
func (s *Store) Close() error {
	s.background.close()
	if !s.temporary {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Reset removes all files and uploads.
func (s *Store) Reset() error {
	return errors.Join(os.RemoveAll(s.partial("")), os.RemoveAll(s.whole("")), s.makeFolders())
}

func (s *Store) partial(name string) string { return filepath.Join(s.dir, "partial", name) }
func (s *Store) whole(name string) string   { return filepath.Join(s.dir, "whole", name) }

// Receive stores a file of at most limit bytes. It returns ErrTooLarge for a larger file, and reader errors unchanged.
func (s *Store) Receive(r io.Reader, limit int64) (Blob, error) {
	id := "once-" + rand.Text()
	if err := s.Begin(id); err != nil {
		return Blob{}, err
	}
	defer s.Drop(id)
	if _, err := s.Append(id, 0, r, limit); err != nil {
		return Blob{}, err
	}
	return s.Finish(id)
}

// Begin starts or restarts a chunked upload. The upload survives a restart of the sandbox.
func (s *Store) Begin(id string) error {
	unlock := s.lock(id)
	defer unlock()
	return os.WriteFile(s.partial(fileName(id)), nil, 0o600)
}

// Append adds a chunk at an offset and returns the new size. Like a platform, it keeps bytes received before a read error.
func (s *Store) Append(id string, at int64, r io.Reader, limit int64) (size int64, err error) {
	unlock := s.lock(id)
	defer unlock()
	file, err := os.OpenFile(s.partial(fileName(id)), os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ErrUnknown
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size, err = file.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	if size != at {
		return size, ErrOffset
	}
	n, err := io.Copy(file, io.LimitReader(r, limit-size+1))
	if size += n; size > limit {
		return size, ErrTooLarge
	}
	return size, err
}

// Size returns an upload's received size; false if there is no such upload.
func (s *Store) Size(id string) (int64, bool) {
	info, err := os.Stat(s.partial(fileName(id)))
	if err != nil {
		return 0, false
	}
	return info.Size(), true
}

// Truncate shortens an upload to an earlier size. It removes a chunk that was written but, because of a kill, never acknowledged. A shorter
// upload is unchanged.
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

// Drop removes an upload.
func (s *Store) Drop(id string) {
	unlock := s.lock(id)
	defer unlock()
	_ = os.Remove(s.partial(fileName(id))) // the file may be finished or already removed
}

// Finish completes an upload and stores the file by hash.
func (s *Store) Finish(id string) (Blob, error) {
	unlock := s.lock(id)
	defer unlock()
	path := s.partial(fileName(id))
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Blob{}, ErrUnknown
	}
	if err != nil {
		return Blob{}, err
	}
	defer file.Close() //nolint:errcheck // the file was only read
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return Blob{}, err
	}
	blob := Blob{SHA256: hex.EncodeToString(hash.Sum(nil)), Bytes: size}
	examine(file, &blob)
	facts, err := json.Marshal(blob)
	if err != nil {
		return Blob{}, err
	}
	// The facts are written first: a file without them would remain unknown.
	if err := s.writeFacts(blob.SHA256, facts); err != nil {
		return Blob{}, err
	}
	return blob, os.Rename(path, s.whole(blob.SHA256))
}

// writeFacts replaces a file's facts in one step. The same content may arrive again while the facts are read.
func (s *Store) writeFacts(hash string, facts []byte) error {
	temporary := s.partial("facts-" + rand.Text())
	if err := os.WriteFile(temporary, facts, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.whole(hash+".json"))
}

// isHash matches complete files' names.
var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Get returns a file's facts; false if it was never received.
func (s *Store) Get(hash string) (Blob, bool) {
	if !isHash.MatchString(hash) {
		return Blob{}, false
	}
	data, err := os.ReadFile(s.whole(hash + ".json"))
	if err != nil {
		return Blob{}, false
	}
	var blob Blob
	if err := json.Unmarshal(data, &blob); err != nil {
		return Blob{}, false
	}
	return blob, true
}

// Open opens a received file.
func (s *Store) Open(hash string) (*os.File, error) {
	if !isHash.MatchString(hash) {
		return nil, fs.ErrNotExist
	}
	return os.Open(s.whole(hash))
}

// fileName returns an upload ID's file name. It hashes the ID, which prevents it from containing a path.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// lock locks an upload and returns its unlock function.
func (s *Store) lock(id string) (unlock func()) {
	found, _ := s.busy.LoadOrStore(id, &sync.Mutex{})
	one, _ := found.(*sync.Mutex)
	one.Lock()
	return one.Unlock
}
