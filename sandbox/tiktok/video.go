// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"crypto/rand"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxTitle is the maximum length of a video's caption.
	maxTitle = 2200
	// maxVideo is the maximum size of a video, in bytes.
	maxVideo = 4_000_000_000
	// minChunk and maxChunk limit the chunk size, except for the only chunk of a small file. TikTok does not document
	// whether its megabytes are decimal, so a size that is invalid under either reading is rejected.
	minChunk = 5 << 20
	maxChunk = 64_000_000
	// maxChunks is the maximum number of chunks of a file.
	maxChunks = 1000
)

// videoPost is the post_info of a video.
type videoPost struct {
	Title          string `json:"title"`
	PrivacyLevel   string `json:"privacy_level"`
	DisableComment bool   `json:"disable_comment"`
	DisableDuet    bool   `json:"disable_duet"`
	DisableStitch  bool   `json:"disable_stitch"`
	CoverMS        *int64 `json:"video_cover_timestamp_ms"`
	BrandContent   *bool  `json:"brand_content_toggle"`
	BrandOrganic   *bool  `json:"brand_organic_toggle"`
	IsAIGC         bool   `json:"is_aigc"`
}

// videoSource is the source_info of a video.
type videoSource struct {
	Source string `json:"source"`
	URL    string `json:"video_url"`
	Size   int64  `json:"video_size"`
	Chunk  int64  `json:"chunk_size"`
	Count  int64  `json:"total_chunk_count"`
}

// directVideo handles POST /v2/post/publish/video/init/.
func (p *Platform) directVideo(w http.ResponseWriter, r *faults.Request) {
	account, _, ok := p.authorized(w, r, scopePublish)
	if !ok {
		return
	}
	var body struct {
		Post   *videoPost   `json:"post_info"`
		Source *videoSource `json:"source_info"`
	}
	bad := p.readJSON(r, &body)
	if bad == nil && (body.Post == nil || body.Source == nil) {
		bad = invalid("post_info and source_info are required.")
	}
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	t, bad := describeVideo(account, *body.Post)
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	data, bad := p.initVideo(r, account, body.Post.Title, t, *body.Source)
	p.answer(w, data, bad)
}

// inboxVideo handles POST /v2/post/publish/inbox/video/init/.
func (p *Platform) inboxVideo(w http.ResponseWriter, r *faults.Request) {
	account, _, ok := p.authorized(w, r, scopeUpload)
	if !ok {
		return
	}
	var body struct {
		Source *videoSource `json:"source_info"`
	}
	bad := p.readJSON(r, &body)
	if bad == nil && body.Source == nil {
		bad = invalid("source_info is required.")
	}
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	data, bad := p.initVideo(r, account, "", ticket{Inbox: true, detail: detail{MediaType: video}}, *body.Source)
	p.answer(w, data, bad)
}

// describeVideo creates the ticket of a video post. Interactions that the creator has disabled remain disabled.
func describeVideo(account state.Account, post videoPost) (ticket, *refusal) {
	if bad := checkLength("post_info.title", post.Title, maxTitle); bad != nil {
		return ticket{}, bad
	}
	if post.BrandContent == nil || post.BrandOrganic == nil {
		return ticket{}, invalid("post_info.brand_content_toggle and post_info.brand_organic_toggle are required.")
	}
	if bad := checkPrivacy(account, post.PrivacyLevel, *post.BrandContent); bad != nil {
		return ticket{}, bad
	}
	private := account.Settings.Private
	return ticket{Privacy: post.PrivacyLevel, detail: detail{
		MediaType: video, DisableComment: post.DisableComment || account.Settings.CommentDisabled,
		DisableDuet: post.DisableDuet || private, DisableStitch: post.DisableStitch || private,
		CoverMS: post.CoverMS, BrandContent: *post.BrandContent, BrandOrganic: *post.BrandOrganic, IsAIGC: post.IsAIGC,
	}}, nil
}

// initVideo starts an upload, or stores a ticket for a video that TikTok fetches and publishes.
func (p *Platform) initVideo(r *faults.Request, account state.Account, text string, t ticket, from videoSource) (any, *refusal) {
	if bad := p.checkSource(from); bad != nil {
		return nil, bad
	}
	if bad := p.checkRoom(account, t.Inbox); bad != nil {
		return nil, bad
	}
	t.Source = from.Source
	way := map[bool]string{false: "v_pub_", true: "v_inbox_"}[t.Inbox]
	if t.Source == fromURL {
		t.From = []string{from.URL}
		return p.issueAndPull(account, way+"url", text, t)
	}
	t.Size, t.Chunk, t.Count, t.Token = from.Size, from.Chunk, from.Count, rand.Text()
	issued, err := p.issue(account, way+"file", text, t)
	if err == nil {
		err = p.Blobs.Begin(issued.ID)
	}
	if err != nil {
		return nil, p.broken("begin an upload", err)
	}
	address := url.Values{"upload_id": {issued.ID}, "upload_token": {t.Token}}
	return map[string]string{
		"publish_id": issued.ID, "upload_url": p.APIURL(r.Request) + "/tiktok/video/?" + address.Encode(),
	}, nil
}

// checkSource returns a refusal if TikTok would not accept the video's source.
func (p *Platform) checkSource(from videoSource) *refusal {
	switch {
	case from.Source == fromURL && (from.Size != 0 || from.Chunk != 0 || from.Count != 0):
		return invalid("source_info takes video_url, and only that, when the source is PULL_FROM_URL.")
	case from.Source == fromURL:
		return p.checkURL("source_info.video_url", from.URL)
	case from.Source != fromFile || from.URL != "":
		return invalid("source_info.source must be FILE_UPLOAD, without video_url, or PULL_FROM_URL.")
	default:
		return checkChunks(from.Size, from.Chunk, from.Count)
	}
}

// checkChunks returns a refusal for invalid chunks: all must have the same size except the last, which takes the
// remainder.
func checkChunks(size, chunk, count int64) *refusal {
	switch {
	case size < 1 || size > maxVideo:
		return invalid("source_info.video_size must be from 1 to %d.", int64(maxVideo))
	case chunk < 1 || chunk > size || size < minChunk && chunk != size:
		return invalid("The chunk size is invalid: a file of less than %d bytes comes whole, and no chunk is larger than its file.", minChunk)
	case size >= minChunk && (chunk < minChunk || chunk > maxChunk):
		return invalid("The chunk size is invalid: it must be from %d to %d.", minChunk, maxChunk)
	case count != size/chunk || count > maxChunks:
		return invalid("The total chunk count is invalid: it must be video_size divided by chunk_size, rounded down, and at most %d.", maxChunks)
	default:
		return nil
	}
}
