// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// pageSize is the greatest limit of GET /{user}/threads.
	pageSize = 100
	// maxPages bounds one look-up: an account may publish 250 posts in 24
	// hours.
	maxPages = 32
)

const (
	msgNoList      = "Threads did not give the account's posts"
	msgTooManyPage = "the account has published more since than Herald reads, so it cannot tell whether the post is among it; look for the post by hand"
	msgNotListed   = "Threads has published the post but does not list it yet"
	msgUnderway    = "Threads is not done with the post"
)

// Lookup asks the container of the job whether it was published, and finds the
// post that it became among the account's posts. Only the container's word
// counts for absence; without a container, or if Threads has forgotten it, the
// list alone is searched.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	published := false
	if meta.ValidID(job.Checkpoint) {
		found, _, err := p.containerState(ctx, job, job.Checkpoint)
		if err != nil {
			return platforms.LookupResult{}, err
		}
		switch found {
		case meta.StatePublished:
			published = true
		case meta.StateFinished, meta.StateError, meta.StateExpired:
			return platforms.LookupResult{Proof: true}, nil
		case meta.StateInProgress:
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgUnderway)
		case meta.StateGone:
		}
	}
	finding, err := p.search(ctx, job)
	if err != nil {
		return platforms.LookupResult{}, err
	}
	if published && finding.Matches == 0 {
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgNotListed)
	}
	return finding, nil
}

// search looks for the job's text in the account's list of posts.
func (p *Platform) search(ctx context.Context, job platforms.Job) (platforms.LookupResult, *platforms.Error) {
	// What hangs from another post is listed apart.
	listing := "threads"
	if job.Content.InReplyTo != "" {
		listing = "replies"
	}
	query := url.Values{
		"fields": {"id,text,timestamp,permalink,media_type,is_reply,replied_to"},
		"since":  {strconv.FormatInt(job.SearchFrom.Unix()-1, 10)},
		"limit":  {strconv.Itoa(pageSize)},
	}
	found, err := meta.Search(query, maxPages, func(query url.Values) (jsondoc.Object, error) {
		resp, failed := p.read(ctx, "list", p.path("/"+url.PathEscape(job.Account.ID)+"/"+listing+"?"+query.Encode()), job.Account.Token)
		if failed != nil {
			return nil, failed.Error
		}
		page, _ := jsondoc.Parse(resp.Body)
		return page, nil
	}, func(entry jsondoc.Object) bool { return fits(job, entry) })
	if failed, ok := errors.AsType[*platforms.Error](err); ok {
		return platforms.LookupResult{}, failed
	}
	switch {
	case errors.Is(err, meta.ErrTooManyPages):
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPage)
	case err != nil:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
	}
	id, entry, at := found.Earliest("timestamp")
	return platforms.LookupResult{Matches: len(found), ExternalID: id, ExternalURL: entry.Text("permalink"), PostedAt: at}, nil
}

// fits tells whether a listed post may be the job's.
func fits(job platforms.Job, entry jsondoc.Object) bool {
	at := publishedAt(entry)
	switch {
	case !at.IsZero() && at.Before(job.SearchFrom.Truncate(time.Second)):
		return false
	case entry.Object("replied_to").Text("id") != job.Content.InReplyTo, entry.Bool("is_reply") != (job.Content.InReplyTo != ""), !sameKind(job.Content.Media, entry.Text("media_type")), !sameText(job.Content, entry.Text("text")):
		return false
	default:
		return job.Taken == nil || !job.Taken(entry.Text("id"))
	}
}

// sameText tells whether a listed text is the content's. Files need none.
func sameText(content platforms.Content, listed string) bool {
	if len(content.Media) > 0 {
		return meta.SameCaption(content.Text, listed)
	}
	return meta.SameText(content.Text, listed)
}

// sameKind tells whether a listed post is of the kind that shows these files.
// Threads lists under other names than those that posts are created with:
// TEXT_POST is what was created as TEXT, CAROUSEL_ALBUM as CAROUSEL.
func sameKind(media []platforms.File, listed string) bool {
	kinds := []string{"CAROUSEL", "CAROUSEL_ALBUM"}
	switch {
	case len(media) == 0:
		kinds = []string{"TEXT", "TEXT_POST"}
	case len(media) == 1 && media[0].IsVideo():
		kinds = []string{"VIDEO"}
	case len(media) == 1:
		kinds = []string{"IMAGE"}
	}
	return listed == "" || slices.Contains(kinds, listed)
}

func publishedAt(entry jsondoc.Object) time.Time { return meta.ParseTime(entry.Text("timestamp")) }
