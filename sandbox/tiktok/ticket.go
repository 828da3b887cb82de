// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

// processing is the default processing time of received files. TikTok needs half a minute for half a gigabyte.
const processing = 300 * time.Millisecond

// moderation is the default time from the end of processing until a public post is listed with its id. On TikTok it
// usually takes less than a minute, sometimes hours.
const moderation = 3 * time.Second

// The kinds of media.
const (
	video = "VIDEO"
	photo = "PHOTO"
)

// The sources of media.
const (
	fromFile = "FILE_UPLOAD"
	fromURL  = "PULL_FROM_URL"
)

// ticket is the data of a publish id, apart from the text.
type ticket struct {
	Source string `json:"source"`
	// From are the URLs of the files that TikTok fetches.
	From []string `json:"from,omitempty"`
	// Token is the secret in an upload URL.
	Token string `json:"token,omitempty"`
	// Size, Chunk and Count describe the chunks of an upload.
	Size  int64 `json:"size,omitempty"`
	Chunk int64 `json:"chunk,omitempty"`
	Count int64 `json:"count,omitempty"`
	// Inbox is true for a draft.
	Inbox   bool   `json:"inbox,omitempty"`
	Title   string `json:"title,omitempty"`
	Privacy string `json:"privacy,omitempty"`
	// Done is true if the ticket ended without a post; Container.Failure contains the reason.
	Done bool `json:"done,omitempty"`
	detail
}

// detail is the stored data of a post, apart from its text.
type detail struct {
	PublishID       string `json:"publish_id,omitempty"`
	MediaType       string `json:"media_type"`
	DisableComment  bool   `json:"disable_comment"`
	DisableDuet     bool   `json:"disable_duet"`
	DisableStitch   bool   `json:"disable_stitch"`
	CoverMS         *int64 `json:"video_cover_timestamp_ms,omitempty"`
	PhotoCoverIndex *int   `json:"photo_cover_index,omitempty"`
	AutoAddMusic    bool   `json:"auto_add_music"`
	BrandContent    bool   `json:"brand_content_toggle"`
	BrandOrganic    bool   `json:"brand_organic_toggle"`
	IsAIGC          bool   `json:"is_aigc"`
	// ReadyAt is when TikTok's processing is finished.
	ReadyAt time.Time `json:"ready_at"`
}

// ticketOf decodes the ticket of a container.
func ticketOf(c state.Container) ticket {
	var out ticket
	_ = json.Unmarshal(c.Detail, &out) // it was encoded by this package; an undecodable ticket is unusable
	return out
}

// detailOf decodes the detail of a post.
func detailOf(post state.Post) detail {
	var out detail
	_ = json.Unmarshal(post.Detail, &out) // as in ticketOf
	return out
}

// issue stores a ticket and returns its container, whose id is the publish id.
func (p *Platform) issue(account state.Account, way, text string, t ticket) (state.Container, error) {
	content, err := json.Marshal(t)
	if err != nil {
		return state.Container{}, err
	}
	fresh := state.Container{Text: text, Detail: content}
	if len(t.From) > 0 {
		fresh.Source = t.From[0]
	}
	return p.Store.CreateContainer(account.Key, fresh, processing, newPublishID(way))
}

// readyAt returns the time at which TikTok will have processed files that arrive now.
func (p *Platform) readyAt(account state.Account) time.Time {
	return p.Clock.Now().Add(account.Settings.Work(processing)).UTC()
}

// listedAt returns the time at which a public post appears in the list and its id becomes public.
func listedAt(account state.Account, post state.Post) time.Time {
	return detailOf(post).ReadyAt.Add(account.Settings.Lag(moderation))
}

// failTicket marks a ticket as failed.
func (p *Platform) failTicket(account state.Account, id, why string) error {
	_, err := p.Store.ChangeContainer(Name, id, func(c *state.Container) {
		t := ticketOf(*c)
		t.Done = true
		if content, err := json.Marshal(t); err == nil { // it was decoded from JSON
			c.Detail = content
		}
		c.Failure, c.ReadyAt = cmp.Or(why, c.Failure), p.readyAt(account)
	})
	return err
}
