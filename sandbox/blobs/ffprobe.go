// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package blobs

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ffprobeWithin is the timeout for examining a file.
const ffprobeWithin = 30 * time.Second

// ffprobe returns the program's path; empty if it is not installed.
var ffprobe = sync.OnceValue(func() string {
	path, err := exec.LookPath("ffprobe")
	if err != nil {
		return ""
	}
	return path
})

// probed is the output of ffprobe.
type probed struct {
	Streams []stream `json:"streams"`
	Format  struct {
		Name     string `json:"format_name"`
		Duration string `json:"duration"`
	} `json:"format"`
}

type stream struct {
	Type        string `json:"codec_type"`
	Codec       string `json:"codec_name"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Aspect      string `json:"sample_aspect_ratio"`
	FrameRate   string `json:"avg_frame_rate"`
	Duration    string `json:"duration"`
	Disposition struct {
		Picture int `json:"attached_pic"`
	} `json:"disposition"`
	SideData []struct {
		Rotation float64 `json:"rotation"`
	} `json:"side_data_list"`
}

// examineByFFprobe examines a file with ffmpeg's parser, which many platforms use. It returns false if it cannot read the file.
func examineByFFprobe(path string, blob *Blob) bool {
	program := ffprobe()
	if program == "" {
		return false
	}
	//nolint:gosec,noctx // runs ffprobe on a file of this process, and a timer ends it
	cmd := exec.Command(program, "-v", "quiet", "-print_format", "json", "-show_format", "-show_streams", "file:"+path)
	var out bytes.Buffer
	cmd.Stdout = &out
	if cmd.Start() != nil {
		return false
	}
	slow := time.AfterFunc(ffprobeWithin, func() { _ = cmd.Process.Kill() }) //nolint:forbidigo // it kills a process, and no test waits for it
	err := cmd.Wait()
	slow.Stop()
	var found probed
	if err != nil || json.Unmarshal(out.Bytes(), &found) != nil || !strings.Contains(found.Format.Name, "mp4") {
		return false
	}
	for i := range found.Streams {
		s := &found.Streams[i]
		if s.Type == "video" || s.Type == "audio" {
			blob.Duration = max(blob.Duration, seconds(s.Duration))
		}
		switch {
		case s.Type == "video" && s.Disposition.Picture == 0 && blob.Width == 0:
			blob.Width, blob.Height = s.shown()
			blob.FrameRate = ratio(s.FrameRate, "/")
			blob.VideoCodec = s.Codec
		case s.Type == "audio" && blob.AudioCodec == "":
			blob.AudioCodec = s.Codec
			if strings.HasPrefix(s.Codec, "pcm_") {
				blob.AudioCodec = "pcm"
			}
		}
	}
	if blob.Duration == 0 {
		// The duration in the video's header may be missing or wrong, so the decoded streams take precedence.
		blob.Duration = seconds(found.Format.Duration)
	}
	return blob.Width > 0
}

// seconds parses a duration; zero if it is invalid.
func seconds(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// shown returns the displayed frame size.
func (s *stream) shown() (width, height int) {
	width, height = s.Width, s.Height
	if aspect := ratio(s.Aspect, ":"); aspect > 0 {
		width = int(math.Round(float64(width) * aspect))
	}
	const quarter, half = 90, 180
	for _, d := range s.SideData {
		if math.Mod(math.Abs(d.Rotation), half) == quarter {
			return height, width
		}
	}
	return width, height
}

// ratio parses a fraction; zero if it is invalid.
func ratio(text, by string) float64 {
	above, below, _ := strings.Cut(text, by)
	a, _ := strconv.ParseFloat(above, 64)
	b, _ := strconv.ParseFloat(below, 64)
	if b == 0 {
		return 0
	}
	return a / b
}
