// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// pageSize is the greatest max_count of POST /v2/video/list/.
	pageSize = 20
	// maxPages bounds one look-up: an account may post about 15 times a day.
	maxPages = 16
)

const (
	msgNoList      = "TikTok did not give the account's posts"
	msgTooManyPage = "the account has published more since than Herald reads, so it cannot tell whether the post is among it; look for the post by hand"
)

// Lookup asks the ticket of the job what became of it. Without one, or if TikTok
// has forgotten it, the account's public posts are searched, which proves no
// absence.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	if id := cmp.Or(job.OperationID, job.Checkpoint); validTicket(id) {
		found, bad := p.fetchStatus(ctx, job.Account.Token, id)
		switch {
		case bad == nil:
			return p.told(job, id, found)
		case !bad.gone():
			return platforms.LookupResult{}, bad.Error
		}
	}
	if !isPublic(&job.Content) {
		// What only its owner sees is not listed.
		return platforms.LookupResult{}, nil
	}
	finding, err := p.search(ctx, job)
	if err != nil {
		return platforms.LookupResult{}, err
	}
	return finding, nil
}

// told is what a ticket says about the post.
func (p *Platform) told(job platforms.Job, id string, found status) (platforms.LookupResult, error) {
	switch {
	case found.state == stateFailed:
		return platforms.LookupResult{Refused: failedOf(found.reason)}, nil
	case p.moderating(job, found):
		// The caller asks again after pauses that double: a dozen times at most.
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgModerated)
	case found.final():
		out := platforms.LookupResult{Matches: 1, Certain: true}
		out.ExternalID, out.ExternalURL = p.published(job, id, found)
		return out, nil
	case isVideo(&job.Content) && found.partial(job.Content.Media[0].Size):
		return platforms.LookupResult{Proof: true}, nil
	default:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgProcessing)
	}
}

// search looks for the job's caption among the account's public posts.
func (p *Platform) search(ctx context.Context, job platforms.Job) (platforms.LookupResult, *platforms.Error) {
	found := platforms.LookupResult{}
	body := map[string]any{"max_count": pageSize}
	for range maxPages {
		data, bad := p.ask(ctx, "list", "/v2/video/list/?fields=id,create_time,title,video_description,share_url", job.Account.Token, body)
		if bad != nil {
			return platforms.LookupResult{}, bad.Error
		}
		entries, ok := data.List("videos")
		if !ok {
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
		}
		reached := false
		for _, entry := range entries {
			at := createdAt(entry)
			if !validPostID(entry.Text("id")) || at.IsZero() {
				return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
			}
			if at.Before(job.SearchFrom.Truncate(time.Second)) {
				// The newest come first.
				reached = true
				continue
			}
			p.consider(&found, job, entry)
		}
		cursor, err := strconv.ParseInt(data.Text("cursor"), 10, 64)
		if reached || !data.Bool("has_more") {
			return found, nil
		}
		if err != nil {
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
		}
		body["cursor"] = cursor
	}
	return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPage)
}

// consider counts a listed post if it may be the job's. The earliest one names
// the finding.
func (p *Platform) consider(found *platforms.LookupResult, job platforms.Job, entry jsondoc.Object) {
	id, at := entry.Text("id"), createdAt(entry)
	want := text.Fold(job.Content.Text)
	if want == "" || want != text.Fold(entry.Text("title")) && want != text.Fold(entry.Text("video_description")) {
		return
	}
	if job.Taken != nil && job.Taken(id) {
		return
	}
	found.Matches++
	if found.ExternalID == "" || at.Before(found.PostedAt) {
		found.ExternalID, found.PostedAt = id, at
		// The address that TikTok lists tells who shares it.
		found.ExternalURL = cmp.Or(p.postURL(job, id), entry.Text("share_url"))
	}
}

func createdAt(entry jsondoc.Object) time.Time {
	seconds, err := strconv.ParseInt(entry.Text("create_time"), 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
