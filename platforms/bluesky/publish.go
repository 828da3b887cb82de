// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// collection is the name of the collection of posts in a repository.
const collection = "app.bsky.feed.post"

// put is the body of com.atproto.repo.putRecord. SwapRecord is always null, which requires that the record does not
// exist.
type put struct {
	Repo       string  `json:"repo"`
	Collection string  `json:"collection"`
	Key        string  `json:"rkey"`
	Record     record  `json:"record"`
	SwapRecord *string `json:"swapRecord"`
}

// record is a post (lexicon app.bsky.feed.post).
type record struct {
	Type      string   `json:"$type"`
	Text      string   `json:"text"`
	Facets    []facet  `json:"facets,omitempty"`
	Reply     *reply   `json:"reply,omitempty"`
	Embed     *embed   `json:"embed,omitempty"`
	Languages []string `json:"langs,omitempty"`
	CreatedAt string   `json:"createdAt"`
}

// reply refers to the first post of a thread and to the post that is replied to.
type reply struct {
	Root   strongRef `json:"root"`
	Parent strongRef `json:"parent"`
}

// strongRef refers to one version of a record.
type strongRef struct {
	URI string `json:"uri"`
	CID string `json:"cid"`
}

// embed attaches images (lexicon app.bsky.embed.images), a video (lexicon app.bsky.embed.video) or a link card (lexicon
// app.bsky.embed.external).
type embed struct {
	Type     string    `json:"$type"`
	Images   []image   `json:"images,omitempty"`
	Video    *blob     `json:"video,omitempty"`
	External *external `json:"external,omitempty"`
	Alt      string    `json:"alt,omitempty"`
	Aspect   *aspect   `json:"aspectRatio,omitempty"`
}

type external struct {
	URI         string `json:"uri"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Thumb       *blob  `json:"thumb,omitempty"`
}

// image is one image. Its alt text is required, but may be empty.
type image struct {
	Image  blob    `json:"image"`
	Alt    string  `json:"alt"`
	Aspect *aspect `json:"aspectRatio,omitempty"`
}

type aspect struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

func aspectOf(file *platforms.File) *aspect {
	if file.Width <= 0 || file.Height <= 0 {
		return nil
	}
	return &aspect{file.Width, file.Height}
}

// prepared returns the embed of a prepared job, or nil if the post has none. ready is false if the job is not prepared.
func (p *Platform) prepared(job *platforms.Job) (e *embed, ready bool) {
	if !p.Prepares(job.Content) {
		return nil, true
	}
	if len(job.Content.Media) > 0 {
		ids := job.FileIDs(isBlob)
		return showFiles(job.Content.Media, ids), ids != nil
	}
	c, ready := parseCard(job.Checkpoint)
	if c.Title == "" {
		return nil, ready
	}
	return c.external(linked(job.Content.Text)), ready
}

// showFiles returns the embed for the files and their blobs.
func showFiles(media []platforms.File, ids []string) *embed {
	var e embed
	for i, id := range ids {
		uploaded, _ := parseBlob(id)
		file := &media[i]
		if file.IsVideo() {
			return &embed{Type: "app.bsky.embed.video", Video: &uploaded, Alt: file.AltText, Aspect: aspectOf(file)}
		}
		e.Type = "app.bsky.embed.images"
		e.Images = append(e.Images, image{Image: uploaded, Alt: file.AltText, Aspect: aspectOf(file)})
	}
	return &e
}

// Publish creates the post's record with one call to com.atproto.repo.putRecord. It first reads what the record refers
// to: the accounts mentioned in the text, and a tree's previous card.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	shown, ready := p.prepared(&job)
	if !ready {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, "the files of the post are not uploaded yet")}
	}
	now := p.config.Clock.Now().UTC()
	post := record{Type: collection, Text: job.Content.Text, Embed: shown, CreatedAt: now.Format("2006-01-02T15:04:05.000Z")}
	if language := job.Content.Language; language != "" {
		post.Languages = []string{language}
	}
	var failure *platforms.Error
	if post.Facets, failure = facets(post.Text, func(handle string) (string, *platforms.Error) { return p.resolveHandle(ctx, job.Account.Token, handle) }); failure != nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: failure}
	}
	if post.Reply, failure = p.replyTo(ctx, &job); failure != nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: failure}
	}
	key := recordKey(job.Key)
	resp, failure, err := p.authorized(ctx, job.Account.Token, func(c *caller) (*transport.Response, error) {
		return c.do(ctx, client.Call{
			Action: "publish", Path: "/xrpc/com.atproto.repo.putRecord", Timeout: callTimeout,
			Body: asJSON(put{Repo: job.Account.ID, Collection: collection, Key: key, Record: post}),
		})
	})
	switch {
	case failure != nil:
		return platforms.Result{Outcome: platforms.NotSent, Err: failure}
	case err != nil:
		return p.clientOf(job.Account.Token).PublishUnanswered(err)
	}
	result := p.publishResult(resp, &job, key, now)
	result.RateLimits = rateLimits(resp.Header, now)
	return result
}

func (p *Platform) publishResult(resp *transport.Response, job *platforms.Job, key string, now time.Time) platforms.Result {
	if resp.Status == http.StatusOK {
		created, _ := jsondoc.Decode[listed](resp.Body)
		if created.key(job.Account.ID) != key {
			return p.api.NoID()
		}
		return platforms.Result{Outcome: platforms.Posted, ExternalID: key, ExternalURL: p.postURL(job.Account.ID, key), PostedAt: now}
	}
	failure, refused := p.classify(resp)
	return p.api.NotPosted(resp.Status, failure, refused)
}

// replyTo returns the references of a tree's next card, or nil outside trees. The references contain hashes of records.
// They are read from the server, so Herald only needs to know the key of the previous card.
func (p *Platform) replyTo(ctx context.Context, job *platforms.Job) (*reply, *platforms.Error) {
	if job.Content.InReplyTo == "" {
		return nil, nil
	}
	parent, found, failure := p.record(ctx, job.Account, job.Content.InReplyTo)
	if failure != nil {
		return nil, failure
	}
	if !found {
		return nil, platforms.Errorf(platforms.ClassPermanent, "the previous card of the tree is no longer on Bluesky").Advise("publish the rest of the tree manually")
	}
	to := reply{Root: parent.strongRef(), Parent: parent.strongRef()}
	if root := parent.Value.Reply.Root; root.URI != "" && root.CID != "" {
		to.Root = strongRef{root.URI.String(), root.CID.String()}
	}
	return &to, nil
}

// postURL returns the address of a post. It contains the DID, so it remains valid if the account's handle changes.
func (p *Platform) postURL(did, key string) string {
	return p.webURL + "/profile/" + url.PathEscape(did) + "/post/" + url.PathEscape(key)
}
