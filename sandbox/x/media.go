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
	// mediaLife is how long an upload may take, and how long a finished one is kept. X's documentation gives a day for
	// both, and fifteen days for the first; the shorter value satisfies both.
	mediaLife = 24 * time.Hour
	// mediaWork is the default processing time of a video or GIF.
	mediaWork = 2 * time.Second
	// pendingPart is the divisor that gives the pending part of the processing time: a quarter. In X's documentation,
	// pending is the first state, even in the first STATUS response.
	pendingPart = 4
	// maxCheckAfter is X's longest wait between status requests.
	maxCheckAfter = 5 * time.Second
)

// The kinds of media, by X's names in responses.
const (
	kindPhoto = "photo"
	kindGIF   = "animated_gif"
	kindVideo = "video"
)

// category describes a media_category.
type category struct {
	kind string
	// types are the accepted media types.
	types []string
	limit int64
}

// The limits for uploads. X's documentation of the limits gives two values for the size of a video; the older, lower
// one applies to every account. Since September 2026 it allows 20 minutes; before that, 140 seconds.
const (
	maxImage = 5 << 20
	maxGIF   = 15 << 20
	maxVideo = 512 << 20
	// maxVideoTime is the maximum duration of a video in a post.
	maxVideoTime = 20 * time.Minute
	minVideoTime = 500 * time.Millisecond
	minVideoSide = 32
	// maxVideoSide is higher than the documented 1280: X accepts 1080p.
	maxVideoSide = 1920
	// maxAspect is the maximum ratio of a video's longer side to its shorter side.
	maxAspect    = 3
	maxFrameRate = 60
	maxGIFWidth  = 1280
	maxGIFHeight = 1080
)

// categories returns the media_category values for posts.
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

// imageCategory is the only category that can be uploaded in one request.
const imageCategory = "tweet_image"

// media is the stored data of an upload, in the detail of a container.
type media struct {
	Category string `json:"category"`
	// Type and Total are the type and size that the client declared.
	Type    string    `json:"type"`
	Total   int64     `json:"total"`
	Expires time.Time `json:"expires"`
	// Chunks are the received chunks, in order.
	Chunks []chunk `json:"chunks,omitempty"`
	// File is the complete file; it is set when the upload is finalized, at Finalized.
	File      *blobs.Blob `json:"file,omitempty"`
	Finalized time.Time   `json:"finalized,omitzero"`
}

// chunk is a part of an upload: its size, and a hash to recognize it on a retry.
type chunk struct {
	Bytes int64  `json:"n"`
	Hash  string `json:"h"`
}

func (m *media) category() category { return categories()[m.Category] }

// received returns the number of bytes received.
func (m *media) received() int64 {
	var n int64
	for _, c := range m.Chunks {
		n += c.Bytes
	}
	return n
}

// slow reports whether X must process the media before it can be attached.
func (m *media) slow() bool { return m.category().kind == kindVideo || m.category().kind == kindGIF }

// upload is a media object and its container.
type upload struct {
	state.Container
	media
}

// key returns the media_key: a number for the kind, followed by the id. Only the number for videos is documented.
func (u *upload) key() string {
	number := map[string]string{kindPhoto: "3_", kindGIF: "16_", kindVideo: "13_"}[u.category().kind]
	return number + u.ID
}

// badMedia returns the error for an unknown or expired upload.
func badMedia() *problem { return invalidBody("Your media IDs are invalid.") }

// findMedia returns an unexpired upload of the account.
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
		p.Blobs.Drop(partialName(id)) // nothing else would remove it
		return upload{}, badMedia()
	}
	if found.AccountID != account.ID {
		return upload{}, forbidden("The media with id ["+id+"] does not belong to you.", notAuthorized)
	}
	return out, nil
}

// partialName returns the name of an upload's chunks in the blob store before it is finalized.
func partialName(id string) string { return Name + "/" + id }

// saveMedia stores the current state of an upload.
func (p *Platform) saveMedia(u *upload) *problem {
	detail, err := json.Marshal(u.media)
	if err == nil {
		_, err = p.Store.ChangeContainer(Name, u.ID, func(c *state.Container) {
			c.Detail, c.ReadyAt, c.Failure, c.AltText = detail, u.ReadyAt, u.Failure, u.AltText
		})
	}
	return p.broken("an upload could not be kept", u.ID, err)
}

// mediaAnswer is the response to every step of an upload; each step sets the fields that apply.
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

// stateSucceeded is the state of successfully processed media.
const stateSucceeded = "succeeded"

// processing returns the processing state of a video or GIF, or nil if the upload is not processed.
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

// videoCodecs are the codecs that X decodes, by their ffmpeg names. X's guide only documents H.264, but users post
// HEVC.
var videoCodecs = []string{"h264", "hevc"}

// isMP4OrQuickTime reports whether a type is MP4 or QuickTime, which have the same structure.
func isMP4OrQuickTime(mimeType string) bool {
	return slices.Contains([]string{"video/mp4", "video/quicktime", "video/x-m4v"}, mimeType)
}

// invalidMedia is X's error name for an unusable file.
const invalidMedia = "InvalidMedia"

// mediaFault returns the error in a complete file, or "" if it is valid. The duration of a video is checked when it is
// posted.
func mediaFault(u *upload) string {
	file, of := u.File, u.category()
	switch {
	case file.MIMEType != u.Type && (!isMP4OrQuickTime(file.MIMEType) || !isMP4OrQuickTime(u.Type)):
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
