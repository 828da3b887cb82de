// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/graph"
	"github.com/herald-social/herald/internal/jsondoc"
	"github.com/herald-social/herald/platforms"
)

const (
	// pageSize is the greatest limit of GET /{page}/published_posts.
	pageSize = 100
	// maxPages bounds one look-up.
	maxPages = 32
)

const (
	msgNoList      = "Facebook did not give the Page's posts"
	msgTooManyPage = "the Page has published more since than Herald reads, so it cannot tell whether the post is among it; look for the post by hand"
)

// Lookup searches the Page's published posts for the job's text, among what was
// created at job.LookFrom or later. Posts that belong to other jobs are passed
// over. What is attached to a post does not matter: Facebook attaches the film
// that an address in the text leads to. Absence is only reported if Facebook
// listed everything; otherwise it is an error.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.Finding, error) {
	found := map[string]jsondoc.Object{}
	query := url.Values{
		"fields": {"id,message,created_time,permalink_url"},
		"since":  {strconv.FormatInt(job.LookFrom.Unix()-1, 10)},
		"limit":  {strconv.Itoa(pageSize)},
	}
	for range maxPages {
		resp, failure, _ := p.read(ctx, "list", p.path("/"+url.PathEscape(job.Account.ID)+"/published_posts?"+query.Encode()), job.Account.Token)
		if failure != nil {
			return platforms.Finding{}, failure
		}
		page, _ := jsondoc.Parse(resp.Body)
		entries, ok := page.List("data")
		if !ok {
			return platforms.Finding{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
		}
		for _, entry := range entries {
			if !graph.ValidID(entry.Text("id")) {
				return platforms.Finding{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
			}
			if fits(job, entry) {
				found[entry.Text("id")] = entry
			}
		}
		if query = graph.NextPage(page); query == nil {
			return p.finding(found), nil
		}
	}
	return platforms.Finding{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPage)
}

// fits tells whether a listed post may be the job's.
func fits(job platforms.Job, entry jsondoc.Object) bool {
	at := createdAt(entry)
	switch {
	case !at.IsZero() && at.Before(job.LookFrom.Truncate(time.Second)):
		return false
	case !graph.SameText(job.Content.Text, entry.Text("message")):
		return false
	default:
		return job.Taken == nil || !job.Taken(entry.Text("id"))
	}
}

func createdAt(entry jsondoc.Object) time.Time { return graph.ParseTime(entry.Text("created_time")) }

// finding names the earliest of the posts that fit.
func (p *Platform) finding(found map[string]jsondoc.Object) platforms.Finding {
	f := platforms.Finding{Matches: len(found)}
	for id, entry := range found {
		at := createdAt(entry)
		if f.ExternalID == "" || at.Before(f.PostedAt) || at.Equal(f.PostedAt) && id < f.ExternalID {
			f.ExternalID, f.ExternalURL, f.PostedAt = id, p.postURL(id, entry), at
		}
	}
	return f
}
