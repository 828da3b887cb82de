// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

// processing is how long TikTok works on what has arrived, unless the control API says otherwise. TikTok itself needs half a
// minute for half a gigabyte.
const processing = 300 * time.Millisecond

// moderation is how long after that work TikTok lists a public post and tells its id, unless the control API says otherwise.
// TikTok itself takes less than a minute as a rule, and hours at times.
const moderation = 3 * time.Second

// The kinds of media.
const (
	video = "VIDEO"
	photo = "PHOTO"
)

// The ways in which a platform gets media.
const (
	fromFile = "FILE_UPLOAD"
	fromURL  = "PULL_FROM_URL"
)

// ticket is what a publish id stands for, beside the text.
type ticket struct {
	Source string `json:"source"`
	// From are the addresses of the files that TikTok fetches.
	From []string `json:"from,omitempty"`
	// Token is the secret of an upload's address.
	Token string `json:"token,omitempty"`
	// Size, Chunk and Count say how the file of an upload comes.
	Size  int64 `json:"size,omitempty"`
	Chunk int64 `json:"chunk,omitempty"`
	Count int64 `json:"count,omitempty"`
	// Inbox says that the post is a draft.
	Inbox   bool   `json:"inbox,omitempty"`
	Title   string `json:"title,omitempty"`
	Privacy string `json:"privacy,omitempty"`
	// Done says that all has arrived and nothing came of it: Container.Failure tells why.
	Done bool `json:"done,omitempty"`
	detail
}

// detail is what a post keeps beside its text.
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
	// ReadyAt is when TikTok's work on the post is done.
	ReadyAt time.Time `json:"ready_at"`
}

// ticketOf reads what a container keeps.
func ticketOf(c state.Container) ticket {
	var out ticket
	_ = json.Unmarshal(c.Detail, &out) // it was encoded here; were it unreadable, the ticket would be of no use
	return out
}

// detailOf reads what a post keeps.
func detailOf(post state.Post) detail {
	var out detail
	_ = json.Unmarshal(post.Detail, &out) // as in ticketOf
	return out
}

// issue keeps a ticket and returns it under its publish id.
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

// readyAt is when TikTok has done its work on what has arrived now.
func (p *Platform) readyAt(account state.Account) time.Time {
	return p.Clock.Now().Add(account.Settings.Work(processing)).UTC()
}

// listedFrom is from when on a public post is listed and its id told.
func listedFrom(account state.Account, post state.Post) time.Time {
	return detailOf(post).ReadyAt.Add(account.Settings.Lag(moderation))
}

// failTicket ends a ticket that becomes no post.
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
