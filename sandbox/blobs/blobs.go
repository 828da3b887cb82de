// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blobs keeps the files that the simulated platforms receive, on disk and by their hash, so that a test can compare
// what arrived with what was sent and a page can show it. Nothing is held in memory: a video may have a gigabyte.
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

// What a simulator has to tell apart.
var (
	// ErrTooLarge says that more bytes came than may.
	ErrTooLarge = errors.New("the file is too large")
	// ErrOffset says that a chunk does not begin where the one before it ended.
	ErrOffset = errors.New("the chunk does not begin where the one before it ended")
	// ErrUnknown says that there is no such upload.
	ErrUnknown = errors.New("no such upload")
)

// Blob is a file that was received whole.
type Blob struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// MIMEType is what the content says it is.
	MIMEType string `json:"mime_type"`
	// Width and Height are those of a picture as it is stored, or of a video as it is shown, in pixels; zero where they
	// cannot be told.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Duration is how long a video plays; zero where it cannot be told.
	Duration time.Duration `json:"duration,omitempty"`
	// FrameRate is how many frames a video shows in a second; VideoCodec and AudioCodec are how it is encoded, as ffmpeg
	// names codecs. They are empty where ffprobe is not installed, or cannot tell.
	FrameRate  float64 `json:"frame_rate,omitempty"`
	VideoCodec string  `json:"video_codec,omitempty"`
	AudioCodec string  `json:"audio_codec,omitempty"`
}

// Store is a folder of files. It may be used by many goroutines at once; of one upload, by one at a time.
type Store struct {
	dir        string
	temporary  bool
	background background
	busy       sync.Map // a mutex for each upload
}

// Open returns the store in a folder, which is made if it is missing. Without a folder the files go with Close.
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

// Close ends the pulls in the background. Without a folder, it removes the files.
func (s *Store) Close() error {
	s.background.close()
	if !s.temporary {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Reset forgets everything.
func (s *Store) Reset() error {
	return errors.Join(os.RemoveAll(s.partial("")), os.RemoveAll(s.whole("")), s.makeFolders())
}

func (s *Store) partial(name string) string { return filepath.Join(s.dir, "partial", name) }
func (s *Store) whole(name string) string   { return filepath.Join(s.dir, "whole", name) }

// Receive keeps a file of at most limit bytes. The error is ErrTooLarge if there are more; one of the reader is returned as it
// is.
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

// Begin starts an upload in chunks, or starts it anew. It survives a restart of the sandbox.
func (s *Store) Begin(id string) error {
	unlock := s.lock(id)
	defer unlock()
	return os.WriteFile(s.partial(fileName(id)), nil, 0o600)
}

// Append adds a chunk that begins at an offset, and returns how many bytes there are now. What came before an error of the
// reader is kept, as a platform keeps it.
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

// Size is how many bytes of an upload are there; false if there is no such upload.
func (s *Store) Size(id string) (int64, bool) {
	info, err := os.Stat(s.partial(fileName(id)))
	if err != nil {
		return 0, false
	}
	return info.Size(), true
}

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

// Drop forgets an upload.
func (s *Store) Drop(id string) {
	unlock := s.lock(id)
	defer unlock()
	_ = os.Remove(s.partial(fileName(id))) // It may be finished, or gone.
}

// Finish ends an upload and keeps the file by its hash.
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
	defer file.Close() //nolint:errcheck // it was only read
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
	// The facts come first: a file without them would be unknown for ever.
	if err := os.WriteFile(s.whole(blob.SHA256+".json"), facts, 0o600); err != nil {
		return Blob{}, err
	}
	return blob, os.Rename(path, s.whole(blob.SHA256))
}

// isHash is the form of the names of whole files.
var isHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Get returns what is known of a file; false if it was never received.
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

// Open opens a file that was received.
func (s *Store) Open(hash string) (*os.File, error) {
	if !isHash.MatchString(hash) {
		return nil, fs.ErrNotExist
	}
	return os.Open(s.whole(hash))
}

// fileName is a name for an upload that no path can hide in.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// lock keeps other calls off an upload until the result is called.
func (s *Store) lock(id string) (unlock func()) {
	found, _ := s.busy.LoadOrStore(id, &sync.Mutex{})
	one, _ := found.(*sync.Mutex)
	one.Lock()
	return one.Unlock
}
