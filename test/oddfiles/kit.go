// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// The declared media types of files.
const (
	jpegType  = "image/jpeg"
	pngType   = "image/png"
	webpType  = "image/webp"
	mp4       = "video/mp4"
	quickTime = "video/quicktime"
)

// types maps file extensions to media types.
var types = map[string]string{
	".jpg": jpegType, ".jpeg": jpegType, ".jfif": jpegType, ".png": pngType, ".webp": webpType, ".mp4": mp4, ".m4v": mp4, ".mov": quickTime,
}

func typeOf(name string) string { return types[strings.ToLower(filepath.Ext(name))] }

// Kit makes files from samples and with ffmpeg.
type Kit struct {
	repository, scratch, ffmpeg string
	encoders                    string
	// made caches the results of ffmpeg by arguments: several rows edit the same video.
	mu   sync.Mutex
	made map[string]func() ([]byte, error)
}

// NewKit returns a Kit with the samples of a repository. It keeps temporary files in the directory scratch.
func NewKit(ctx context.Context, repository, scratch string) (*Kit, error) {
	k := &Kit{repository: repository, scratch: scratch, made: map[string]func() ([]byte, error){}}
	path, err := exec.LookPath("ffmpeg")
	if errors.Is(err, exec.ErrNotFound) {
		return k, nil
	} else if err != nil {
		return nil, err
	}
	k.ffmpeg = path
	out, err := exec.CommandContext(ctx, path, "-v", "quiet", "-encoders").Output()
	k.encoders = string(out)
	return k, err
}

// ffmpegItself means that a row needs ffmpeg, but only features that every build has.
const ffmpegItself = "ffmpeg"

// Lacks returns the first of a row's needs that is not met, or "" if all are.
func (k *Kit) Lacks(needs []string) string {
	for _, need := range needs {
		if k.ffmpeg == "" {
			return ffmpegItself
		}
		if need != ffmpegItself && !strings.Contains(k.encoders, " "+need+" ") {
			return "ffmpeg's encoder " + need
		}
	}
	return ""
}

// FFmpeg returns the path of ffmpeg, or "" if it is missing.
func (k *Kit) FFmpeg() string { return k.ffmpeg }

// sample returns a sample from the probe's tests.
func (k *Kit) sample(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(k.repository, "internal", "media", "probe", "testdata", name))
}

// encode runs ffmpeg to write a file with the given extension, only once for equal arguments. In the arguments,
// "chart.png" stands for the chart and "input" for the parameter input.
func (k *Kit) encode(ending string, input []byte, args ...string) ([]byte, error) {
	key := fmt.Sprintf("%s %q %x", ending, args, sum(input))
	k.mu.Lock()
	once, ok := k.made[key]
	if !ok {
		once = sync.OnceValues(func() ([]byte, error) { return k.run(ending, input, args) })
		k.made[key] = once
	}
	k.mu.Unlock()
	data, err := once()
	return bytes.Clone(data), err
}

func (k *Kit) run(ending string, input []byte, args []string) ([]byte, error) {
	folder, err := os.MkdirTemp(k.scratch, "odd")
	if err != nil {
		return nil, err
	}
	in, out := filepath.Join(folder, "input"), filepath.Join(folder, "output"+ending)
	if err := os.WriteFile(in, input, 0o600); err != nil {
		return nil, err
	}
	all := []string{"-v", "error", "-nostdin", "-y"}
	for _, arg := range args {
		if arg == "input" {
			arg = in
		}
		all = append(all, arg)
	}
	if output, err := exec.Command(k.ffmpeg, append(all, out)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ffmpeg %q: %w\n%s", args, err, output)
	}
	data, err := os.ReadFile(out)
	return data, errors.Join(err, os.RemoveAll(folder))
}

// edit returns a Maker that changes another Maker's file.
func edit(from Maker, changes ...func([]byte) []byte) Maker {
	return func(k *Kit) ([]byte, error) {
		data, err := from(k)
		for _, change := range changes {
			if err == nil {
				data = change(data)
			}
		}
		return data, err
	}
}

// sampled returns a Maker for a sample.
func sampled(name string) Maker { return func(k *Kit) ([]byte, error) { return k.sample(name) } }

// fixed returns a Maker with a constant result.
func fixed(data func() []byte) Maker { return func(*Kit) ([]byte, error) { return data(), nil } }

// followed appends bytes to a file.
func followed(by ...[]byte) func([]byte) []byte {
	return func(data []byte) []byte { return append(data, bytes.Join(by, nil)...) }
}

// endless removes the last n bytes.
func endless(n int) func([]byte) []byte {
	return func(data []byte) []byte { return data[:len(data)-n] }
}

// WriteTemp writes a file for other programs and returns its path.
func (k *Kit) WriteTemp(data []byte) (string, error) {
	file, err := os.CreateTemp(k.scratch, "kept")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	return file.Name(), errors.Join(err, file.Close())
}
