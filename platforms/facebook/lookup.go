// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// pageSize is how many posts are asked for at once: half of what GET
	// /{page}/published_posts takes, since each may list ten photos.
	pageSize = 50
	// maxPages bounds one look-up.
	maxPages = 64
)

const (
	msgNoList      = "Facebook did not give the Page's posts"
	msgOtherPhotos = "the Page shows a post with the same text, of which Facebook does not tell whether its photos are those of this one; compare them by hand"
	msgTooManyPage = "the Page has published more since than Herald reads, so it cannot tell whether the post is among it; look for the post by hand"
)

// Lookup searches the Page's published posts for the job's, among what was
// created at job.SearchFrom or later.
//
// A photo that was uploaded for a job is shown by no other post, so that photos
// are looked for by their ids, whatever the text has become. Whether Facebook
// lists a photo under the id of its upload is not certain: another post with the
// same text is an error, for the post's own may still appear, and a person can
// tell them apart. A text is looked for by its words, among posts that belong to
// no other job. Absence is only reported if Facebook listed everything;
// otherwise it is an error.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	s := newSearch(job)
	query := url.Values{
		"fields": {"id,message,created_time,permalink_url,attachments{media_type,target{id},subattachments{media_type,target{id}}}"},
		"since":  {strconv.FormatInt(job.SearchFrom.Unix()-1, 10)},
		"limit":  {strconv.Itoa(pageSize)},
	}
	for range maxPages {
		resp, failure, _ := p.read(ctx, "list", p.path("/"+url.PathEscape(job.Account.ID)+"/published_posts?"+query.Encode()), job.Account.Token)
		if failure != nil {
			return platforms.LookupResult{}, failure
		}
		page, _ := jsondoc.Parse(resp.Body)
		entries, ok := page.List("data")
		if !ok || slices.ContainsFunc(entries, func(entry jsondoc.Object) bool { return !meta.ValidID(entry.Text("id")) }) {
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgNoList)
		}
		for _, entry := range entries {
			s.add(entry)
		}
		if query = meta.NextPage(page); query == nil {
			return p.finding(s)
		}
	}
	return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPage)
}

// search sorts the posts of a Page by what they are to a job.
type search struct {
	job platforms.Job
	// shows says that the job has photos, and photos are their ids.
	shows  bool
	photos []string
	// own are the posts that show the job's photos, and alike those that its
	// text may have become. unclear says that there is another one that may be
	// the job's.
	own, alike map[string]jsondoc.Object
	unclear    bool
}

func newSearch(job platforms.Job) *search {
	return &search{
		job: job, shows: len(job.Content.Media) > 0, photos: job.FileIDs(meta.ValidID),
		own: map[string]jsondoc.Object{}, alike: map[string]jsondoc.Object{},
	}
}

// add looks at a listed post.
func (s *search) add(entry jsondoc.Object) {
	id, at := entry.Text("id"), createdAt(entry)
	shown := attached(entry)
	switch {
	case s.shows && shown.any(s.photos):
		s.own[id] = entry
	case !at.IsZero() && at.Before(s.job.SearchFrom.Truncate(time.Second)), !s.sameText(entry), s.job.Taken != nil && s.job.Taken(id):
	case s.shows:
		// Also if Facebook lists nothing that it shows: a false absence would
		// publish it twice.
		s.unclear = true
	case !shown.media || leadsAway.MatchString(s.job.Content.Text):
		s.alike[id] = entry
	}
}

// sameText tells whether a listed post has the job's text; a job with photos may
// have none.
func (s *search) sameText(entry jsondoc.Object) bool {
	want, got := s.job.Content.Text, entry.Text("message")
	return meta.SameText(want, got) || s.shows && strings.TrimSpace(want+got) == ""
}

// leadsAway finds what Facebook may take for an address, of which it shows
// what that leads to: a film, perhaps.
var leadsAway = regexp.MustCompile(`\S[./]\S`)

// shown is what is attached to a listed post.
type shown struct {
	// media says that a photo or a video is among it.
	media bool
	// targets are the ids of what it leads to: of the photos, one by one, and of
	// the album that they make.
	targets []string
}

// attached reads what is attached to a listed post.
func attached(entry jsondoc.Object) (s shown) {
	attachments, _ := entry.Object("attachments").List("data")
	for _, a := range attachments {
		parts, _ := a.Object("subattachments").List("data")
		for _, part := range append(parts, a) {
			kind := part.Text("media_type")
			s.media = s.media || kind == "photo" || kind == "album" || kind == "video"
			if id := part.Object("target").Text("id"); id != "" {
				s.targets = append(s.targets, id)
			}
		}
	}
	return s
}

// any reports whether one of the photos is shown.
func (s shown) any(photos []string) bool {
	return slices.ContainsFunc(photos, func(id string) bool { return slices.Contains(s.targets, id) })
}

func createdAt(entry jsondoc.Object) time.Time { return meta.ParseTime(entry.Text("created_time")) }

// finding names the earliest of the posts that fit.
func (p *Platform) finding(s *search) (platforms.LookupResult, error) {
	found := s.alike
	switch {
	case len(s.own) > 0:
		found = s.own
	case s.unclear:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgOtherPhotos)
	}
	f := platforms.LookupResult{Matches: len(found), Certain: len(s.own) == 1}
	for id, entry := range found {
		at := createdAt(entry)
		if f.ExternalID == "" || at.Before(f.PostedAt) || at.Equal(f.PostedAt) && id < f.ExternalID {
			f.ExternalID, f.ExternalURL, f.PostedAt = id, p.postURL(id, entry), at
		}
	}
	return f, nil
}
