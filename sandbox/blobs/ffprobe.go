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

// ffprobeWithin bounds the examination of one file.
const ffprobeWithin = 30 * time.Second

// ffprobe is the program's path; empty where it is not installed.
var ffprobe = sync.OnceValue(func() string {
	path, err := exec.LookPath("ffprobe")
	if err != nil {
		return ""
	}
	return path
})

// probed is what ffprobe says of a file.
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

// examineByFFprobe reads a file as a program that many platforms build upon reads it; false where it cannot.
func examineByFFprobe(path string, blob *Blob) bool {
	program := ffprobe()
	if program == "" {
		return false
	}
	//nolint:gosec,noctx // it is ffprobe on a file of this process, ended by the timer
	cmd := exec.Command(program, "-v", "quiet", "-print_format", "json", "-show_format", "-show_streams", "file:"+path)
	var out bytes.Buffer
	cmd.Stdout = &out
	if cmd.Start() != nil {
		return false
	}
	slow := time.AfterFunc(ffprobeWithin, func() { _ = cmd.Process.Kill() }) //nolint:forbidigo // it ends a process, and no test waits for it
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
		// What the header of the film says may be missing or wrong: what is decoded counts.
		blob.Duration = seconds(found.Format.Duration)
	}
	return blob.Width > 0
}

// seconds reads a duration; zero if it is none.
func seconds(text string) time.Duration {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// shown is the size of the picture as players show it.
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

// ratio reads a fraction; zero if it is none.
func ratio(text, by string) float64 {
	above, below, _ := strings.Cut(text, by)
	a, _ := strconv.ParseFloat(above, 64)
	b, _ := strconv.ParseFloat(below, 64)
	if b == 0 {
		return 0
	}
	return a / b
}
