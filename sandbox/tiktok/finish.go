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

// The sides of media, in pixels.
const (
	minVideoSide = 360
	maxVideoSide = 4096
	// maxShortSide and maxLongSide are those of 1080p, which photos may have at most.
	maxShortSide = 1080
	maxLongSide  = 1920
)

// maxPhotoBytes is how large a photo may be.
const maxPhotoBytes = 20_000_000

// issueAndPull keeps a ticket of files that TikTok fetches. The answer does not wait for them.
func (p *Platform) issueAndPull(account state.Account, way, text string, t ticket) (any, *refusal) {
	issued, err := p.issue(account, way, text, t)
	if err != nil {
		return nil, p.broken("keep a publish id", err)
	}
	p.pull(issued)
	return map[string]string{"publish_id": issued.ID}, nil
}

// pull fetches the files of a ticket in the background, and makes the post.
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
		if err := p.fetched(issued.ID, files, why); err != nil && !errors.Is(err, state.ErrNoContainer) { // a reset forgets tickets
			p.Logger.Error("what was fetched could not be posted", "platform", Name, "ticket", issued.ID, "error", err)
		}
	})
}

// fetched makes a post of files that were fetched.
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

// resume fetches what a restart kept from being fetched.
func (p *Platform) resume() {
	for _, issued := range p.Store.Unfetched(Name) {
		if issued.PostID == "" && !ticketOf(issued).Done {
			p.pull(issued)
		}
	}
}

// finish makes the post of a publish id whose files have arrived, unless something is wrong with them or there is no room
// for it.
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

// videoCodecs are what TikTok decodes, as ffmpeg names them.
var videoCodecs = []string{"h264", "hevc", "vp8", "vp9"}

// minFrameRate and maxFrameRate are 23 and 60 frames a second, with what the clock of a film may be off.
const minFrameRate, maxFrameRate = 22, 63

// checkFiles says why TikTok fails a post with such files; "" when it does not. What cannot be told of a file does not
// fail it.
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

// settle ends an upload whose last byte is there. It also does so when the sandbox was killed before it could; a file that
// got lost then is a failure of TikTok's own. Call it with the upload locked.
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
