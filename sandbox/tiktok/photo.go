// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"strconv"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxPhotoTitle and maxDescription are the maximum lengths of a photo post's title and description.
	maxPhotoTitle  = 90
	maxDescription = 4000
	// maxPhotos is the maximum number of photos in a post.
	maxPhotos = 35
)

// photoPost is the post_info of a photo post.
type photoPost struct {
	Title          string  `json:"title"`
	Description    string  `json:"description"`
	PrivacyLevel   *string `json:"privacy_level"`
	DisableComment *bool   `json:"disable_comment"`
	AutoAddMusic   *bool   `json:"auto_add_music"`
	BrandContent   *bool   `json:"brand_content_toggle"`
	BrandOrganic   *bool   `json:"brand_organic_toggle"`
}

// photoInit is the body of POST /v2/post/publish/content/init/.
type photoInit struct {
	MediaType string    `json:"media_type"`
	PostMode  string    `json:"post_mode"`
	Post      photoPost `json:"post_info"`
	Source    struct {
		Source     string   `json:"source"`
		Images     []string `json:"photo_images"`
		CoverIndex *int     `json:"photo_cover_index"`
	} `json:"source_info"`
	IsAIGC bool `json:"is_aigc"`
}

// photos handles POST /v2/post/publish/content/init/.
func (p *Platform) photos(w http.ResponseWriter, r *faults.Request) {
	var body photoInit
	bad := p.readJSON(r, &body)
	scope := scopePublish
	if body.PostMode == "MEDIA_UPLOAD" {
		scope = scopeUpload
	}
	account, _, ok := p.authorized(w, r, scope)
	if !ok {
		return
	}
	var t ticket
	if bad == nil {
		t, bad = p.describePhotos(account, body)
	}
	if bad == nil {
		bad = p.checkRoom(account, t.Inbox)
	}
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	t.From = body.Source.Images
	data, bad := p.issueAndPull(account, "p_pub_url", body.Post.Description, t)
	p.answer(w, data, bad)
}

// describePhotos creates the ticket of a photo post. It returns a refusal if TikTok would reject the post.
func (p *Platform) describePhotos(account state.Account, body photoInit) (ticket, *refusal) {
	direct := body.PostMode == "DIRECT_POST"
	t := ticket{Source: fromURL, Inbox: !direct, Title: body.Post.Title, detail: detail{
		MediaType: photo, PhotoCoverIndex: body.Source.CoverIndex, IsAIGC: body.IsAIGC,
		DisableComment: given(body.Post.DisableComment) || direct && account.Settings.CommentDisabled,
		AutoAddMusic:   given(body.Post.AutoAddMusic), BrandContent: given(body.Post.BrandContent), BrandOrganic: given(body.Post.BrandOrganic),
	}}
	switch {
	case body.MediaType != photo:
		return t, invalid("media_type must be PHOTO.")
	case !direct && body.PostMode != "MEDIA_UPLOAD":
		return t, invalid("post_mode must be DIRECT_POST or MEDIA_UPLOAD.")
	}
	if bad := p.checkPhotoSource(body); bad != nil {
		return t, bad
	}
	if bad := checkLength("post_info.title", body.Post.Title, maxPhotoTitle); bad != nil {
		return t, bad
	}
	if bad := checkLength("post_info.description", body.Post.Description, maxDescription); bad != nil {
		return t, bad
	}
	if direct {
		if body.Post.PrivacyLevel != nil {
			t.Privacy = *body.Post.PrivacyLevel
		}
		return t, checkPrivacy(account, t.Privacy, t.BrandContent)
	}
	post := body.Post
	if post.PrivacyLevel != nil || post.DisableComment != nil || post.AutoAddMusic != nil || post.BrandContent != nil || post.BrandOrganic != nil {
		return t, invalid("post_info takes title and description only when post_mode is MEDIA_UPLOAD.")
	}
	return t, nil
}

func given(flag *bool) bool { return flag != nil && *flag }

func (p *Platform) checkPhotoSource(body photoInit) *refusal {
	images, cover := body.Source.Images, body.Source.CoverIndex
	switch {
	case body.Source.Source != fromURL:
		return invalid("source_info.source must be PULL_FROM_URL.")
	case len(images) < 1 || len(images) > maxPhotos:
		return invalid("source_info.photo_images must have 1 to %d addresses.", maxPhotos)
	case cover != nil && (*cover < 0 || *cover >= len(images)):
		return invalid("source_info.photo_cover_index must be the number of a photo, counted from 0.")
	}
	for i, address := range images {
		if bad := p.checkURL("source_info.photo_images["+strconv.Itoa(i)+"]", address); bad != nil {
			return bad
		}
	}
	return nil
}
