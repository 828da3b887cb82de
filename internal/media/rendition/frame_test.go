// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image/jpeg"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

// frameExtractor returns an extractor that uses this machine's ffmpeg.
func frameExtractor(t *testing.T) rendition.FrameExtractor {
	t.Helper()
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("this test needs ffmpeg in PATH; install it (apt-get install ffmpeg)")
	}
	return rendition.FrameExtractor{Path: path}
}

func videoOf(data []byte) rendition.VideoSource {
	return rendition.VideoSource{Size: int64(len(data)), Open: func(_ context.Context, offset, length int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(bytes.NewReader(data), offset, length)), nil
	}}
}

func TestExtract(t *testing.T) {
	program := frameExtractor(t)
	for name, tc := range map[string]struct {
		reason        string
		file          string
		at            time.Duration
		width, height int
	}{
		"first frame":      {"the first frame can be chosen", "faststart.mp4", 0, 64, 48},
		"in between":       {"frames between key frames depend on others", "faststart.mp4", 500 * time.Millisecond, 64, 48},
		"index at the end": {"the file is read in ranges", "tail.mp4", 500 * time.Millisecond, 64, 48},
		"fragments":        {"streams are stored as fragments", "fragmented.mp4", 500 * time.Millisecond, 64, 48},
		"QuickTime":        {"phones record QuickTime files", "quicktime.mov", 500 * time.Millisecond, 64, 48},
		"turned":           {"a rotated frame is shown upright", "rotated.mp4", 500 * time.Millisecond, 48, 64},
		"large":            {"a large frame is scaled down", "portrait.mp4", 0, 405, 720},
	} {
		t.Run(name, func(t *testing.T) {
			picture, err := program.Extract(t.Context(), videoOf(sample(t, tc.file)), tc.at)
			if err != nil {
				t.Fatalf("%s: %v: %v", tc.reason, err, errors.Unwrap(err))
			}
			decoded, err := jpeg.Decode(bytes.NewReader(picture.Data))
			must.Succeed(t, err)
			got := decoded.Bounds().Size()
			if got.X != tc.width || got.Y != tc.height || picture.Width != tc.width || picture.Height != tc.height {
				t.Errorf("%s: %d × %d, declared %d × %d, want %d × %d", tc.reason, got.X, got.Y, picture.Width, picture.Height, tc.width, tc.height)
			}
		})
	}
}

// TestExtractScalesPixels checks that a video whose pixels are not square is not squeezed.
func TestExtractScalesPixels(t *testing.T) {
	ffmpeg := frameExtractor(t)
	for name, tc := range map[string]struct {
		reason        string
		size, shape   string
		width, height int
	}{
		"wide points": {"HDV stores 1440 for 1920", "1440x1080", "4/3", 1280, 720},
		"high points": {"pixels that are higher than wide", "720x1080", "1/2", 240, 720},
		"small":       {"the frame is widened to its shape, and not enlarged", "64x48", "4/3", 85, 48},
		"squares":     {"square pixels need no scaling", "64x48", "1/1", 64, 48},
		"no shape":    {"undefined means square", "64x48", "0/1", 64, 48},
		"a line":      {"the frame would have no height", "640x8", "50/1", 1280, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "film.mp4")
			command := exec.CommandContext(t.Context(), ffmpeg.Path, "-v", "error", "-f", "lavfi", "-i", "testsrc=size="+tc.size+":rate=10:duration=0.2",
				"-vf", "setsar="+tc.shape, "-c:v", "mpeg4", path)
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			data, err := os.ReadFile(path)
			must.Succeed(t, err)
			picture, err := ffmpeg.Extract(t.Context(), videoOf(data), 0)
			if err != nil {
				t.Fatalf("%s: %v: %v", tc.reason, err, errors.Unwrap(err))
			}
			if picture.Width != tc.width || picture.Height != tc.height {
				t.Errorf("%s: %d × %d, want %d × %d", tc.reason, picture.Width, picture.Height, tc.width, tc.height)
			}
		})
	}
}

// The video has 15 frames, 100 ms apart.
func TestExtractAtTime(t *testing.T) {
	program, film := frameExtractor(t), videoOf(sample(t, "tail.mp4"))
	at := func(moment time.Duration) string {
		t.Helper()
		picture, err := program.Extract(t.Context(), film, moment)
		must.Succeed(t, err)
		sum := sha256.Sum256(picture.Data)
		return hex.EncodeToString(sum[:])
	}
	seen := map[string]time.Duration{}
	for _, moment := range []time.Duration{0, 300 * time.Millisecond, 700 * time.Millisecond, 1400 * time.Millisecond} {
		picture := at(moment)
		if other, ok := seen[picture]; ok {
			t.Errorf("the same picture at %s and at %s", other, moment)
		}
		seen[picture] = moment
	}
	last := at(1400 * time.Millisecond)
	for _, beyond := range []time.Duration{1401 * time.Millisecond, 1500 * time.Millisecond, time.Minute} {
		if at(beyond) != last {
			t.Errorf("at %s is another picture than the last", beyond)
		}
	}
}

func TestExtractFails(t *testing.T) {
	program := frameExtractor(t)
	playlist := "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n"
	broken := sample(t, "faststart.mp4")
	for name, data := range map[string][]byte{
		"a text":              []byte(strings.Repeat("this is no film\n", 99)),
		"a playlist":          []byte(playlist),
		"a list of files":     []byte("ffconcat version 1.0\nfile '/etc/hostname'\n"),
		"sound only":          sample(t, "audio.mp4"),
		"a film without data": append(bytes.Clone(broken[:len(broken)/2]), make([]byte, len(broken)/2)...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := program.Extract(t.Context(), videoOf(data), 0)
			problem := new(rendition.ExtractError)
			if !errors.As(err, &problem) || !problem.Final || !strings.Contains(problem.Message, "no picture") {
				t.Fatalf("got %v", err)
			}
			if cause := errors.Unwrap(problem).Error(); strings.Contains(cause, "127.0.0.1") {
				t.Errorf("the cause names the address: %s", cause)
			}
		})
	}
}

// A failing store, or another file in it, is not the video's fault.
func TestExtractReturnsReadErrors(t *testing.T) {
	program := frameExtractor(t)
	for name, want := range map[string]error{"changed": store.ErrChanged, "down": errors.New("the store is down")} {
		t.Run(name, func(t *testing.T) {
			film := rendition.VideoSource{Size: 4096, Open: func(context.Context, int64, int64) (io.ReadCloser, error) { return nil, want }}
			if _, err := program.Extract(t.Context(), film, 0); !errors.Is(err, want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestExtractEndsWhenTheStoreStalls(t *testing.T) {
	program := frameExtractor(t)
	var opened atomic.Bool
	film := rendition.VideoSource{Size: 4096, Open: func(ctx context.Context, _, _ int64) (io.ReadCloser, error) {
		opened.Store(true)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	// On a busy machine a second passes before ffmpeg opens the video.
	for timeout := time.Second; !opened.Load(); timeout *= 4 {
		program.Timeout = timeout
		_, err := program.Extract(t.Context(), film, 0)
		problem := new(rendition.ExtractError)
		if !errors.As(err, &problem) || problem.Final || !strings.Contains(problem.Message, "within "+timeout.String()) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestExtractWithoutFFmpeg(t *testing.T) {
	_, err := rendition.FrameExtractor{Path: filepath.Join(t.TempDir(), "none")}.Extract(t.Context(), videoOf([]byte("film")), 0)
	if problem := new(rendition.ExtractError); !errors.As(err, &problem) || problem.Final || !strings.Contains(problem.Message, "thumbnails.ffmpeg") {
		t.Errorf("got %v", err)
	}
}

// script is a program that misbehaves in place of ffmpeg, or reports how it was started.
func script(t *testing.T, body string) rendition.FrameExtractor {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are limited on Linux only")
	}
	path := filepath.Join(t.TempDir(), "ffmpeg")
	must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700))
	return rendition.FrameExtractor{Path: path}
}

func TestChildIsConfined(t *testing.T) {
	t.Setenv("HERALD_TEST_SECRET", "hunter2")
	program := script(t, `echo "memory $(:; ulimit -v)" >&2
exit 1
`)
	_, err := program.Extract(t.Context(), videoOf([]byte("film")), 0)
	if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "Cannot fork") {
		t.Errorf("the child starts another process: %v: %v", err, cause)
	}
	program = script(t, `ulimit -v >&2
ulimit -t >&2
ulimit -f >&2
ulimit -c >&2
echo "secret ($HERALD_TEST_SECRET), folder $PWD" >&2
exit 1
`)
	_, err = program.Extract(t.Context(), videoOf([]byte("film")), 0)
	if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "1048576\n45\n0\n0\nsecret (), folder /") {
		t.Errorf("got %v: %v", err, cause)
	}
	_, err = script(t, "exec /bin/true\n").Extract(t.Context(), videoOf([]byte("film")), 0)
	if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "not permitted") {
		t.Errorf("the child becomes another program: %v: %v", err, cause)
	}
}

func TestChildOutputIsBounded(t *testing.T) {
	_, err := script(t, "while echo picture; do :; done\n").Extract(t.Context(), videoOf([]byte("film")), 0)
	if problem := new(rendition.ExtractError); !errors.As(err, &problem) || problem.Message != "the picture is too large" {
		t.Errorf("got %v", err)
	}
	_, err = script(t, "printf '%100000d' 1 >&2; exit 1\n").Extract(t.Context(), videoOf([]byte("film")), 0)
	if cause := errors.Unwrap(err); cause == nil || len(cause.Error()) > 4<<10 {
		t.Errorf("got %v", err)
	}
}

func TestChildIsKilled(t *testing.T) {
	program := script(t, "while :; do :; done\n")
	program.Timeout = 100 * time.Millisecond
	_, err := program.Extract(t.Context(), videoOf([]byte("film")), 0)
	problem := new(rendition.ExtractError)
	if !errors.As(err, &problem) || errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("got %v", err)
	}
}

// A small video can request any number of large frames (here 17 of 50 MB, in a file of a few kilobytes). The limit per
// process determines the size of the manager's pod.
func TestExtractLimitsMemory(t *testing.T) {
	program := frameExtractor(t)
	if !alone(t) {
		return
	}
	_, err := program.Extract(t.Context(), videoOf(sample(t, "frames.mp4")), 1600*time.Millisecond)
	if problem := new(rendition.ExtractError); !errors.As(err, &problem) || !problem.Final {
		t.Errorf("%v", err)
	}
	var used syscall.Rusage
	must.Succeed(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	// Linked code and stacks are not data.
	const linked = 64 << 20
	if most := used.Maxrss << 10; most > rendition.MaxThumbnailData+linked {
		t.Errorf("a process used %d MiB", most>>20)
	}
}

// When memory runs short, the system kills a process that uses a lot, not the one at fault.
func TestExtractIsKilled(t *testing.T) {
	program := frameExtractor(t)
	film := videoOf(sample(t, "faststart.mp4"))
	var kill sync.Once
	open := film.Open
	film.Open = func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
		kill.Do(func() { killChildren(t) })
		return open(ctx, offset, length)
	}
	_, err := program.Extract(t.Context(), film, 0)
	if problem := new(rendition.ExtractError); !errors.As(err, &problem) || problem.Final || !errors.Is(err, rendition.ErrKilled) {
		t.Errorf("%v", err)
	}
}

// killChildren kills the child processes of this process.
func killChildren(t *testing.T) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Errorf("no children: %v", err)
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // The thread has exited.
		}
		for id := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(id); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
