// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// fetchTimeout is how long photo URLs are valid. TikTok stops fetching after an hour.
const fetchTimeout = 2 * time.Hour

// The checkpoints of photos. Preparing photos means querying the account's options, and the checkpoint contains the
// result, because TikTok does not return an id for the query. No ticket has this form.
const (
	photosWithComments    = "photos:comments"
	photosWithoutComments = "photos:no-comments"
)

func (p *Platform) preparePhotos(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	who, err := p.checkCreator(ctx, job)
	switch {
	case err != nil:
		return "", err
	case bool(who.CommentDisabled):
		return photosWithoutComments, nil
	default:
		return photosWithComments, nil
	}
}

// creatorOf parses the checkpoint of photos. ok is false for any other checkpoint.
func creatorOf(checkpoint string) (who creatorInfo, ok bool) {
	who.CommentDisabled = checkpoint == photosWithoutComments
	return who, bool(who.CommentDisabled) || checkpoint == photosWithComments
}

type photoInit struct {
	MediaType string      `json:"media_type"`
	PostMode  string      `json:"post_mode"`
	Post      photoPost   `json:"post_info"`
	Source    photoSource `json:"source_info"`
	IsAIGC    bool        `json:"is_aigc,omitempty"`
}

// photoPost holds a photo post's properties. The description contains the whole caption: TikTok allows 4000 UTF-16 code
// units in a description, and a caption has at most 2200. A title is limited to 90, so it could only repeat part of the
// caption.
type photoPost struct {
	Description string `json:"description,omitempty"`
	*directPhotos
}

// directPhotos holds the options for direct posts. For a draft, the owner chooses them in the app.
type directPhotos struct {
	PrivacyLevel   v1alpha1.TikTokPrivacyLevel `json:"privacy_level"`
	DisableComment bool                        `json:"disable_comment"`
	AutoAddMusic   bool                        `json:"auto_add_music"`
	BrandContent   bool                        `json:"brand_content_toggle"`
	BrandOrganic   bool                        `json:"brand_organic_toggle"`
}

// photoSource lists the URLs that TikTok fetches the photos from. The first photo is the cover.
type photoSource struct {
	Source     string   `json:"source"`
	CoverIndex int      `json:"photo_cover_index"`
	Images     []string `json:"photo_images"`
}

// newPhotoInit returns the body for photos, with a URL for each. Comments remain disabled if the account has disabled
// them.
func newPhotoInit(ctx context.Context, content *platforms.Content, who creatorInfo) (photoInit, *platforms.Error) {
	options := &content.TikTok
	out := photoInit{
		MediaType: "PHOTO", PostMode: "MEDIA_UPLOAD", IsAIGC: options.IsAIGenerated,
		Post: photoPost{Description: content.Text}, Source: photoSource{Source: "PULL_FROM_URL"},
	}
	if !options.Draft {
		out.PostMode = "DIRECT_POST"
		out.Post.directPhotos = &directPhotos{
			PrivacyLevel: privacy(options), AutoAddMusic: options.AutoAddMusic,
			DisableComment: !allowed(options.AllowComment) || bool(who.CommentDisabled),
		}
	}
	for i := range content.Media {
		address, err := content.Media[i].Bytes.Address(ctx, fetchTimeout)
		if err != nil {
			return photoInit{}, content.Media[i].Unreadable(err)
		}
		out.Source.Images = append(out.Source.Images, address)
	}
	return out, nil
}
