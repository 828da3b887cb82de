// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
)

const (
	// pageSize is the maximum value of max_count in POST /v2/video/list/.
	pageSize = 20
	// maxPages bounds one lookup. An account may post about 15 times a day.
	maxPages = 16
	// listPath lists public posts with the fields that Lookup uses.
	listPath = "/v2/video/list/?fields=id,create_time,title,video_description,share_url"
)

// Lookup reads the status of the job's ticket. If there is no ticket, or TikTok no longer knows it, Lookup searches the
// account's public posts, which does not prove absence.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	if id := cmp.Or(job.OperationID, job.Checkpoint); validTicket(id) {
		found, bad := p.fetchStatus(ctx, job.Account.Token, id)
		switch {
		case bad == nil:
			return p.lookupResult(job, id, found)
		case !bad.isUnknownID():
			return platforms.LookupResult{}, bad.Error
		}
	}
	if !isPublic(&job.Content) {
		// A post that only its owner can see is not listed.
		return platforms.LookupResult{}, nil
	}
	return p.search(ctx, job)
}

func (p *Platform) lookupResult(job platforms.Job, id string, found status) (platforms.LookupResult, error) {
	switch {
	case found.state == stateFailed:
		return platforms.LookupResult{Refused: failedOf(found.reason)}, nil
	case job.OperationID == "" && (found.whole(&job.Content) || p.moderating(job, found)):
		// Because of the operation id, the caller looks up the ticket until TikTok has finished.
		return platforms.LookupResult{OperationID: id}, nil
	case p.moderating(job, found):
		// The caller repeats the lookup with doubling pauses, at most a dozen times.
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgModerated)
	case found.final():
		out := platforms.LookupResult{Matches: 1, Certain: true}
		out.ExternalID, out.ExternalURL = p.publishedPost(job, id, found)
		return out, nil
	case isVideo(&job.Content) && found.partial(job.Content.Media[0].Size):
		return platforms.LookupResult{Proof: true}, nil
	default:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgProcessing)
	}
}

type listedPost struct {
	ID          jsondoc.Text `json:"id"`
	CreateTime  jsondoc.Text `json:"create_time"`
	Title       jsondoc.Text `json:"title"`
	Description jsondoc.Text `json:"video_description"`
	ShareURL    jsondoc.Text `json:"share_url"`
}

func (l *listedPost) created() time.Time {
	seconds, err := strconv.ParseInt(l.CreateTime.String(), 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func (p *Platform) search(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	matches := listing.Matches{}
	body := map[string]any{"max_count": pageSize}
	for range maxPages {
		page, bad := callAPI[struct {
			Videos  []listedPost `json:"videos"`
			Cursor  jsondoc.Text `json:"cursor"`
			HasMore jsondoc.Flag `json:"has_more"`
		}](ctx, p, "list", listPath, job.Account.Token, body)
		if bad != nil {
			return platforms.LookupResult{}, bad.Error
		}
		if page.Videos == nil {
			return platforms.LookupResult{}, p.API.NoList()
		}
		reached := false
		for i := range page.Videos {
			post := &page.Videos[i]
			id, at := post.ID.String(), post.created()
			switch {
			case !validPostID(id) || at.IsZero():
				return platforms.LookupResult{}, p.API.NoList()
			case listing.IsOld(&job, at, time.Second):
				// The newest come first.
				reached = true
			case post.fits(&job):
				// The listed URL identifies the user who shared the post.
				matches.Add(listing.Match{ID: id, URL: cmp.Or(p.postURL(job, id), post.ShareURL.Web()), At: at})
			}
		}
		cursor, err := strconv.ParseInt(page.Cursor.String(), 10, 64)
		if reached || !bool(page.HasMore) {
			return matches.Result(), nil
		}
		if err != nil {
			return platforms.LookupResult{}, p.API.NoList()
		}
		body["cursor"] = cursor
	}
	return platforms.LookupResult{}, p.API.TooManyPages()
}

func (l *listedPost) fits(job *platforms.Job) bool {
	want := text.Fold(job.Content.Text)
	return want != "" && (matchesTruncated(want, l.Title) || matchesTruncated(want, l.Description)) && !listing.BelongsToOther(job, l.ID.String())
}

// longestListed is the maximum number of characters in a listed title or description (TikTok API, "Video Object", 24
// August 2026: "Max length: 150").
const longestListed = 150

// matchesTruncated reports whether a listed text equals the wanted one, or its beginning if TikTok may have truncated
// it. TikTok does not document the unit, so a text may have been truncated if it has at least that many bytes, the
// smallest unit. The last character and a trailing ellipsis are ignored: truncation may have changed them.
func matchesTruncated(want string, listed jsondoc.Text) bool {
	all := text.Fold(listed.String())
	if all == want {
		return true
	}
	if len(listed) < longestListed {
		return false
	}
	kept := []rune(strings.TrimRight(all, ".…\uFFFD "))
	return len(kept) > 1 && strings.HasPrefix(want, string(kept[:len(kept)-1]))
}
