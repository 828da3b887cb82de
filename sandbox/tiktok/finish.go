// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// The limits on the side lengths of media, in pixels.
const (
	minVideoSide = 360
	maxVideoSide = 4096
	// maxShortSide and maxLongSide are the sides of 1080p, the maximum for photos.
	maxShortSide = 1080
	maxLongSide  = 1920
)

// maxPhotoBytes is the maximum size of a photo, in bytes.
const maxPhotoBytes = 20_000_000

// issueAndPull stores a ticket for files that TikTok fetches. It does not wait for the files.
func (p *Platform) issueAndPull(account state.Account, way, text string, t ticket) (any, *refusal) {
	issued, err := p.issue(account, way, text, t)
	if err != nil {
		return nil, p.broken("keep a publish id", err)
	}
	p.pull(issued)
	return map[string]string{"publish_id": issued.ID}, nil
}

// pull fetches a ticket's files in the background and publishes the post.
func (p *Platform) pull(issued state.Container) {
	most, failed := int64(maxVideo), "video_pull_failed"
	if ticketOf(issued).MediaType == photo {
		most, failed = maxPhotoBytes, "photo_pull_failed"
	}
	p.Blobs.PullLater(ticketOf(issued).From, most, blobs.Refuse, func(files []blobs.Blob, err error) {
		why := ""
		if err != nil {
			p.Logger.Info("a file could not be fetched", "platform", Name, "error", err)
			why = failed
		}
		if err := p.fetched(issued.ID, files, why); err != nil && !errors.Is(err, state.ErrNoContainer) { // a reset removes tickets
			p.Logger.Error("a fetched file could not be posted", "platform", Name, "ticket", issued.ID, "error", err)
		}
	})
}

// fetched publishes a post from fetched files.
func (p *Platform) fetched(id string, files []blobs.Blob, why string) error {
	unlock := p.uploads.Lock(id)
	defer unlock()
	issued, ok := p.Store.Container(Name, id)
	switch {
	case !ok:
		return state.ErrNoContainer
	case ticketOf(issued).Done:
		return nil
	}
	account, ok := p.Store.Account(state.Key{Platform: Name, ID: issued.AccountID})
	if !ok {
		return state.ErrNoAccount
	}
	return p.finish(account, issued, files, why)
}

// resume restarts downloads that a restart interrupted.
func (p *Platform) resume() {
	for _, issued := range p.Store.Unfetched(Name) {
		if issued.PostID == "" && !ticketOf(issued).Done {
			p.pull(issued)
		}
	}
}

// finish publishes the post of a publish id once its files have arrived. It fails the ticket if the files are invalid
// or the quota is exhausted.
func (p *Platform) finish(account state.Account, issued state.Container, files []blobs.Blob, why string) error {
	t := ticketOf(issued)
	why = cmp.Or(why, issued.Failure, checkFiles(t.MediaType, files))
	if bad := p.checkRoom(account, t.Inbox); why == "" && bad != nil {
		why = bad.code
	}
	if why != "" {
		return p.failTicket(account, issued.ID, why)
	}
	t.PublishID, t.ReadyAt = issued.ID, p.readyAt(account)
	kept, err := json.Marshal(t.detail)
	if err != nil {
		return err
	}
	draft := state.Draft{
		Text: issued.Text, Title: t.Title, Privacy: t.Privacy, Inbox: t.Inbox, Free: t.Inbox, Container: issued.ID, Detail: kept,
		NewID: newID,
	}
	for _, file := range files {
		draft.Media = append(draft.Media, simulator.MediaOf(file))
	}
	_, err = p.Store.Publish(account.Key, draft)
	if _, full := errors.AsType[*state.QuotaError](err); full {
		return p.failTicket(account, issued.ID, tooManyPosts)
	}
	if _, done := errors.AsType[*state.PublishedError](err); done {
		return nil
	}
	return err
}

// videoCodecs are the codecs that TikTok decodes, by their ffmpeg names.
var videoCodecs = []string{"h264", "hevc", "vp8", "vp9"}

// minFrameRate and maxFrameRate are 23 and 60 frames per second, with some tolerance for inexact clocks.
const minFrameRate, maxFrameRate = 22, 63

// checkFiles returns TikTok's failure reason for the files, or "" if they are valid. Unknown properties count as valid.
func checkFiles(kind string, files []blobs.Blob) string {
	for _, file := range files {
		short, long := min(file.Width, file.Height), max(file.Width, file.Height)
		if kind == photo {
			if !slices.Contains([]string{"image/jpeg", "image/webp"}, file.MIMEType) {
				return "file_format_check_failed"
			}
			if short > maxShortSide || long > maxLongSide {
				return "picture_size_check_failed"
			}
			continue
		}
		switch {
		case !slices.Contains(videoTypes, file.MIMEType):
			return "file_format_check_failed"
		case file.Duration > maxVideoSeconds*time.Second:
			return "duration_check_failed"
		case long > 0 && (short < minVideoSide || long > maxVideoSide):
			return "picture_size_check_failed"
		case file.VideoCodec != "" && !slices.Contains(videoCodecs, file.VideoCodec):
			return "file_format_check_failed"
		case file.FrameRate > 0 && (file.FrameRate < minFrameRate || file.FrameRate > maxFrameRate):
			return "frame_rate_check_failed"
		}
	}
	return ""
}

// settle completes an upload after its last byte, including uploads that a kill interrupted. If the kill lost the file,
// the upload fails with an internal TikTok error. The caller holds the upload's lock.
func (p *Platform) settle(id string) error {
	issued, ok := p.Store.Container(Name, id)
	t := ticketOf(issued)
	if !ok || t.Source != fromFile || t.Done || issued.PostID != "" {
		return nil
	}
	account, ok := p.Store.Account(state.Key{Platform: Name, ID: issued.AccountID})
	if !ok {
		return state.ErrNoAccount
	}
	size, known := p.Blobs.Size(id)
	switch {
	case !known:
		return p.failTicket(account, id, "internal")
	case size < t.Size:
		return nil
	}
	file, err := p.Blobs.Finish(id)
	if err != nil {
		return err
	}
	return p.finish(account, issued, []blobs.Blob{file}, "")
}
