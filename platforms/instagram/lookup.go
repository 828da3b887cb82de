// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// pageSize is how many posts are asked for at once: as many as an account
	// may publish in 24 hours, by the larger of the numbers that Instagram
	// gives.
	pageSize = 100
	// maxPages bounds one look-up.
	maxPages = 32
)

const (
	msgNoList      = "Instagram did not give the account's posts"
	msgTooManyPage = "the account has published more since than Herald reads, so it cannot tell whether the post is among it; look for the post by hand"
	msgNotListed   = "Instagram has published the post but does not list it yet"
	msgUnderway    = "Instagram is not done with the post"
)

// Lookup asks the container of the job whether it was published, and finds the
// post that it became among the account's posts. Only the container's word
// counts for absence; without a container, or if Instagram has forgotten it,
// the list alone is searched.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	t := p.task(job)
	published := false
	if meta.ValidID(job.Checkpoint) {
		found, _, bad := t.state(ctx, job.Checkpoint)
		if bad != nil {
			return platforms.LookupResult{}, bad.Error
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
	finding, err := t.search(ctx)
	if err != nil {
		return platforms.LookupResult{}, err
	}
	if published && finding.Matches == 0 {
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, msgNotListed)
	}
	return finding, nil
}

// search looks for the job's post in the account's list.
func (t *task) search(ctx context.Context) (platforms.LookupResult, error) {
	query := url.Values{
		"fields": {"id,caption,timestamp,permalink,media_type,media_product_type"},
		"since":  {strconv.FormatInt(t.job.SearchFrom.Unix()-1, 10)},
		"limit":  {strconv.Itoa(pageSize)},
	}
	found, err := meta.Search(query, maxPages, func(query url.Values) (jsondoc.Object, error) {
		page, bad := t.host.read(ctx, "list", "/"+url.PathEscape(t.job.Account.ID)+"/media?"+query.Encode(), t.job.Account.Token)
		if bad != nil {
			return nil, bad.Error
		}
		return page, nil
	}, func(entry jsondoc.Object) bool { return fits(t.job, entry) })
	switch {
	case errors.Is(err, meta.ErrTooManyPages):
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPage)
	case errors.Is(err, meta.ErrNoList):
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
	case err != nil:
		return platforms.LookupResult{}, err
	}
	id, entry, at := found.Earliest("timestamp")
	return platforms.LookupResult{Matches: len(found), ExternalID: id, ExternalURL: entry.Text("permalink"), PostedAt: at}, nil
}

// fits tells whether a listed post may be the job's.
func fits(job platforms.Job, entry jsondoc.Object) bool {
	at := meta.ParseTime(entry.Text("timestamp"))
	switch {
	case !at.IsZero() && at.Before(job.SearchFrom.Truncate(time.Second)):
		return false
	case !sameKind(job.Content.Media, entry), !meta.SameCaption(job.Content.Text, entry.Text("caption")):
		return false
	default:
		return job.Taken == nil || !job.Taken(entry.Text("id"))
	}
}

// sameKind tells whether a listed post is of the kind that shows these files.
// Reels are listed as videos.
func sameKind(media []platforms.File, entry jsondoc.Object) bool {
	want := "IMAGE"
	switch {
	case len(media) > 1:
		want = "CAROUSEL_ALBUM"
	case len(media) == 1 && media[0].IsVideo():
		want = "VIDEO"
	}
	listed := entry.Text("media_type")
	return (listed == "" || listed == want) && entry.Text("media_product_type") != "STORY"
}
