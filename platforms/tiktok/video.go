// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// videoInit is the body of the calls that start a video upload. A draft has no post_info, because the owner enters it
// in the app.
type videoInit struct {
	Post   *videoPost  `json:"post_info,omitempty"`
	Source videoSource `json:"source_info"`
}

// videoPost holds a video post's properties. TikTok requires the advertisement flags even if they are false.
type videoPost struct {
	Title          string                      `json:"title,omitempty"`
	PrivacyLevel   v1alpha1.TikTokPrivacyLevel `json:"privacy_level"`
	DisableComment bool                        `json:"disable_comment"`
	DisableDuet    bool                        `json:"disable_duet"`
	DisableStitch  bool                        `json:"disable_stitch"`
	CoverMillis    *int64                      `json:"video_cover_timestamp_ms,omitempty"`
	BrandContent   bool                        `json:"brand_content_toggle"`
	BrandOrganic   bool                        `json:"brand_organic_toggle"`
	IsAIGC         bool                        `json:"is_aigc,omitempty"`
}

type videoSource struct {
	Source string `json:"source"`
	Size   int64  `json:"video_size"`
	Chunk  int64  `json:"chunk_size"`
	Count  int64  `json:"total_chunk_count"`
}

// newVideoPost returns a video post's properties. Features that the account has disabled remain disabled.
func newVideoPost(content *platforms.Content, who creatorInfo) *videoPost {
	options := &content.TikTok
	post := &videoPost{
		Title: content.Text, PrivacyLevel: privacy(options), IsAIGC: options.IsAIGenerated,
		DisableComment: !allowed(options.AllowComment) || bool(who.CommentDisabled),
		DisableDuet:    !allowed(options.AllowDuet) || bool(who.DuetDisabled),
		DisableStitch:  !allowed(options.AllowStitch) || bool(who.StitchDisabled),
	}
	if content.ThumbnailAt != nil {
		post.CoverMillis = new(content.ThumbnailAt.Milliseconds())
	}
	return post
}

func isVideo(content *platforms.Content) bool { return content.Category == v1alpha1.CategoryVideo }

// Prepares reports whether a step precedes the visible call: the upload of a video, or the query for the account's
// options. Drafts of photos need only one call, with the photos' URLs.
func (*Platform) Prepares(content platforms.Content) bool {
	return isVideo(&content) || !content.TikTok.Draft
}

// Prepare uploads a video, or checks the account's options for photos.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if isVideo(&job.Content) {
		return p.prepareVideo(ctx, job)
	}
	return p.preparePhotos(ctx, job)
}

// prepareVideo uploads a video except for its last chunk. It resumes an earlier upload while its URL is valid.
func (p *Platform) prepareVideo(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	u, err := p.resume(ctx, job)
	if err != nil {
		return job.Checkpoint, err
	}
	var who creatorInfo
	if !job.Content.TikTok.Draft {
		if who, err = p.checkCreator(ctx, job); err != nil {
			return "", err
		}
	}
	for range maxUploads {
		if u == nil {
			if u, err = p.createUpload(ctx, job, who); err != nil {
				return "", err
			}
		}
		ended, err := p.sendAllButLast(ctx, job, u)
		switch {
		case err != nil:
			return u.ticket, err
		case !ended:
			return u.ticket, u.complete(ctx, &job)
		case u.blind:
			// Starting over could publish the video twice.
			return u.ticket, platforms.Errorf(platforms.ClassTransient, msgNoState)
		}
		u = nil
	}
	return "", platforms.Errorf(platforms.ClassTransient, msgEnded, job.Content.Media[0].Name)
}

// resume returns the upload of an earlier preparation, or nil if it cannot be resumed. ClassDuplicate means that TikTok
// has received all bytes in the meantime.
func (p *Platform) resume(ctx context.Context, job platforms.Job) (*upload, *platforms.Error) {
	if !validTicket(job.Checkpoint) {
		return nil, nil
	}
	size := job.Content.Media[0].Size
	found, bad := p.fetchStatus(ctx, job.Account.Token, job.Checkpoint)
	switch {
	case bad != nil && bad.isUnknownID(), bad == nil && found.state == stateFailed:
		return nil, nil
	case bad != nil:
		return nil, bad.Error
	case found.partial(size) && p.isLost(job.Checkpoint):
		// TikTok still lacks bytes, so there is no post, but it does not accept them for this ticket.
		return nil, nil
	case found.partial(size), found.silent():
		known, cut, ok := p.readSession(job.Secret, size)
		switch {
		case ok && p.Clock.Now().Before(known.Ends.Add(-minLeft)):
			// Regardless of how much has arrived, a ticket results in at most one post.
			return &upload{ticket: job.Checkpoint, session: known, parts: cut, sent: max(found.uploaded, 0), blind: found.silent()}, nil
		case found.partial(size):
			return nil, nil
		}
		return nil, platforms.Errorf(platforms.ClassTransient, msgNoState)
	case found.final(), found.uploaded >= size:
		return nil, platforms.Errorf(platforms.ClassDuplicate, msgVisible)
	default:
		// Starting over could publish the video twice.
		return nil, platforms.Errorf(platforms.ClassTransient, msgNoState)
	}
}

func (p *Platform) isLost(ticket string) bool {
	_, lost := p.lost.Get(ticket)
	return lost
}

// complete stores the offset at which an upload's last call starts.
func (u *upload) complete(ctx context.Context, job *platforms.Job) *platforms.Error {
	if u.last() == 0 {
		// The file has not been read yet. If it has been overwritten, the owner should receive the error now.
		file := &job.Content.Media[0]
		bytes, err := file.Bytes.Open(ctx, 0, 1)
		if err != nil {
			return file.Unreadable(err)
		}
		_ = bytes.Close() // opening it was enough
	}
	from := u.sent
	if from == u.last() || from == u.From {
		// If an earlier call started within the chunk, it made no progress.
		from = 0
	}
	if from == u.From {
		return nil
	}
	u.From = from
	return u.saveCheckpoint(ctx, job)
}
