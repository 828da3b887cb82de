// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// mediaLife is how long an upload may take, and how long a finished one may be attached. X's pages say a day of both,
	// and fifteen days of the first; the shorter is safe by both.
	mediaLife = 24 * time.Hour
	// mediaWork is how long X works on a video or GIF, unless the control API says otherwise.
	mediaWork = 2 * time.Second
	// pendingPart is which part of that time passes before the work begins: a quarter. X's pages show pending as the first
	// state, also of the first STATUS.
	pendingPart = 4
	// maxCheckAfter is the longest that X tells a client to wait before asking again.
	maxCheckAfter = 5 * time.Second
)

// The kinds of media, as X names them in answers.
const (
	kindPhoto = "photo"
	kindGIF   = "animated_gif"
	kindVideo = "video"
)

// category is what a media_category stands for.
type category struct {
	kind string
	// types are the media types that it takes.
	types []string
	limit int64
}

// Limits of what is uploaded. X's page of limits has two values for the bytes of a video; the older and lower is what every
// account may rely on. It allows 20 minutes since September 2026, and allowed 140 seconds before.
const (
	maxImage = 5 << 20
	maxGIF   = 15 << 20
	maxVideo = 512 << 20
	// maxVideoTime is how long a video of a post may be.
	maxVideoTime = 20 * time.Minute
	minVideoTime = 500 * time.Millisecond
	minVideoSide = 32
	// maxVideoSide is above X's documented 1280: 1080p works.
	maxVideoSide = 1920
	// maxAspect is how many times as wide as high a video may be, or as high as wide.
	maxAspect    = 3
	maxFrameRate = 60
	maxGIFWidth  = 1280
	maxGIFHeight = 1080
)

// categories are the values of media_category that posts take.
func categories() map[string]category {
	images := []string{"image/jpeg", "image/png", "image/webp"}
	videos := []string{"video/mp4", "video/quicktime", "video/webm", "video/mp2t"}
	return map[string]category{
		imageCategory:   {kind: kindPhoto, types: images, limit: maxImage},
		"tweet_gif":     {kind: kindGIF, types: []string{"image/gif"}, limit: maxGIF},
		"tweet_video":   {kind: kindVideo, types: videos, limit: maxVideo},
		"amplify_video": {kind: kindVideo, types: videos, limit: maxVideo},
	}
}

// imageCategory is the only category that may be uploaded in one request.
const imageCategory = "tweet_image"

// media is what is kept of an upload, in the detail of a container.
type media struct {
	Category string `json:"category"`
	// Type and Total are what the client announced.
	Type    string    `json:"type"`
	Total   int64     `json:"total"`
	Expires time.Time `json:"expires"`
	// Chunks are those that arrived, in order.
	Chunks []chunk `json:"chunks,omitempty"`
	// File is what they are together, once the upload has been finalized at Finalized.
	File      *blobs.Blob `json:"file,omitempty"`
	Finalized time.Time   `json:"finalized,omitzero"`
}

// chunk is a part of an upload: how long it is, and a hash to know it by when it is sent again.
type chunk struct {
	Bytes int64  `json:"n"`
	Hash  string `json:"h"`
}

func (m *media) category() category { return categories()[m.Category] }

// received is how many bytes have arrived.
func (m *media) received() int64 {
	var n int64
	for _, c := range m.Chunks {
		n += c.Bytes
	}
	return n
}

// slow says whether X works on it before it can be attached.
func (m *media) slow() bool { return m.category().kind == kindVideo || m.category().kind == kindGIF }

// upload is a media with what the store knows of it.
type upload struct {
	state.Container
	media
}

// key is the media_key: a number of the kind before the id. Of the numbers, only that of videos is documented.
func (u *upload) key() string {
	number := map[string]string{kindPhoto: "3_", kindGIF: "16_", kindVideo: "13_"}[u.category().kind]
	return number + u.ID
}

// badMedia is the answer to an id that no upload has given out, or not lately.
func badMedia() *problem { return invalidBody("Your media IDs are invalid.") }

// findMedia returns an upload that has not expired and that an account may use.
func (p *Platform) findMedia(account state.Account, id string) (upload, *problem) {
	found, ok := p.Store.Container(Name, id)
	if !ok {
		return upload{}, badMedia()
	}
	out := upload{Container: found}
	if err := json.Unmarshal(found.Detail, &out.media); err != nil {
		return upload{}, p.broken("an upload cannot be read", id, err)
	}
	if !p.Clock.Now().Before(out.Expires) {
		p.Blobs.Drop(partialName(id)) // it would stay there for ever
		return upload{}, badMedia()
	}
	if found.AccountID != account.ID {
		return upload{}, forbidden("The media with id ["+id+"] does not belong to you.", notAuthorized)
	}
	return out, nil
}

// partialName is where the chunks of an upload lie until it is finalized.
func partialName(id string) string { return Name + "/" + id }

// saveMedia writes down what an upload has become.
func (p *Platform) saveMedia(u *upload) *problem {
	detail, err := json.Marshal(u.media)
	if err == nil {
		_, err = p.Store.ChangeContainer(Name, u.ID, func(c *state.Container) {
			c.Detail, c.ReadyAt, c.Failure = detail, u.ReadyAt, u.Failure
		})
	}
	return p.broken("an upload could not be kept", u.ID, err)
}

// mediaAnswer is what every step of an upload answers, as far as it applies.
type mediaAnswer struct {
	ID           string          `json:"id"`
	MediaKey     string          `json:"media_key"`
	Size         int64           `json:"size,omitempty"`
	ExpiresAfter int64           `json:"expires_after_secs"`
	Processing   *processingInfo `json:"processing_info,omitempty"`
	Image        *imageInfo      `json:"image,omitempty"`
}

type imageInfo struct {
	Type   string `json:"image_type"`
	Width  int    `json:"w"`
	Height int    `json:"h"`
}

type processingInfo struct {
	State      string           `json:"state"`
	CheckAfter int64            `json:"check_after_secs,omitempty"`
	Progress   *int64           `json:"progress_percent,omitempty"`
	Error      *processingError `json:"error,omitempty"`
}

type processingError struct {
	Code    int    `json:"code"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (p *Platform) answerMedia(u *upload) mediaAnswer {
	out := mediaAnswer{
		ID: u.ID, MediaKey: u.key(), Processing: p.processing(u),
		ExpiresAfter: int64(u.Expires.Sub(p.Clock.Now()) / time.Second),
	}
	if u.File != nil {
		out.Size = u.File.Bytes
	}
	return out
}

// stateSucceeded is how processing ends when it ends well.
const stateSucceeded = "succeeded"

// processing says how far X is with a video or GIF; nil when there is nothing to wait for.
func (p *Platform) processing(u *upload) *processingInfo {
	if u.File == nil || !u.slow() {
		return nil
	}
	elapsed, total := p.Clock.Now().Sub(u.Finalized), u.ReadyAt.Sub(u.Finalized)
	if remaining := total - elapsed; remaining > 0 {
		wait := int64(math.Ceil(min(remaining, maxCheckAfter).Seconds()))
		if elapsed < total/pendingPart {
			return &processingInfo{State: "pending", CheckAfter: wait}
		}
		percent := int64(100 * elapsed / total)
		return &processingInfo{State: "in_progress", CheckAfter: wait, Progress: &percent}
	}
	percent := int64(100)
	if u.Failure != "" {
		return &processingInfo{State: "failed", Progress: &percent, Error: &processingError{
			Code: 1, Name: u.Failure, Message: cmp.Or(mediaFault(u), "The file could not be processed."),
		}}
	}
	return &processingInfo{State: stateSucceeded, Progress: &percent}
}

// videoCodecs are what X decodes, as ffmpeg names them: its guide names H.264 alone, and its users post HEVC.
var videoCodecs = []string{"h264", "hevc"}

// isFilm reports whether a type is that of an MP4 or QuickTime film, which have one structure.
func isFilm(mimeType string) bool {
	return slices.Contains([]string{"video/mp4", "video/quicktime", "video/x-m4v"}, mimeType)
}

// invalidMedia is how X names a file that it can do nothing with.
const invalidMedia = "InvalidMedia"

// mediaFault says what is wrong with a whole file; "" when nothing is. How long a video is matters when it is posted.
func mediaFault(u *upload) string {
	file, of := u.File, u.category()
	switch {
	case file.MIMEType != u.Type && (!isFilm(file.MIMEType) || !isFilm(u.Type)):
		return fmt.Sprintf("The file is %s, not %s.", file.MIMEType, u.Type)
	case file.Width == 0 || file.Height == 0:
		return "The file is damaged."
	case of.kind == kindGIF && (file.Width > maxGIFWidth || file.Height > maxGIFHeight):
		return fmt.Sprintf("The GIF has %d×%d pixels; %d×%d are the most.", file.Width, file.Height, maxGIFWidth, maxGIFHeight)
	case of.kind != kindVideo:
		return ""
	}
	long, short := max(file.Width, file.Height), min(file.Width, file.Height)
	switch {
	case short < minVideoSide || long > maxVideoSide:
		return fmt.Sprintf("The video has %d×%d pixels; each side must have %d to %d.", file.Width, file.Height, minVideoSide, maxVideoSide)
	case long > maxAspect*short:
		return fmt.Sprintf("The video has %d×%d pixels; its aspect ratio must be between 1:3 and 3:1.", file.Width, file.Height)
	case file.Duration < minVideoTime:
		return fmt.Sprintf("The video takes %v; %v is the least.", file.Duration, minVideoTime)
	case file.FrameRate > maxFrameRate*1.05:
		return fmt.Sprintf("The video has %.2f frames a second; %d are the most.", file.FrameRate, maxFrameRate)
	case file.VideoCodec != "" && !slices.Contains(videoCodecs, file.VideoCodec):
		return fmt.Sprintf("The video is encoded as %s; it must be H.264.", file.VideoCodec)
	default:
		return ""
	}
}
