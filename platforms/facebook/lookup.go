// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// pageSize is how many posts are asked for at once: half of what GET
	// /{page}/published_posts takes, since each may list ten photos.
	pageSize = 50
	// maxPages bounds one look-up.
	maxPages = 64
)

// Lookup asks the post of a job that was created unpublished whether it is published,
// and searches the Page's published posts for those of other jobs, among what was
// created at job.SearchFrom or later.
//
// A photo that was uploaded for a job is shown by no other post, so that photos
// are looked for by their ids, whatever the text has become. Whether Facebook
// lists a photo under the id of its upload is not certain: another post with the
// same text is an error, for the post's own may still appear, and a person can
// tell them apart. A text is looked for by its words, among posts that belong to
// no other job. A list that breaks off is an error; one that ends without the post
// proves nothing, see Capabilities.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	if id := draftOf(job.Checkpoint); id != "" {
		found, there, err := p.lookupDraft(ctx, &job, id)
		if err != nil {
			return platforms.LookupResult{}, err
		}
		if there {
			return found, nil
		}
	}
	s := newSearch(job)
	query := url.Values{
		"fields": {"id,message,created_time,permalink_url,attachments{media_type,target{id},subattachments{media_type,target{id}}}"},
		"since":  {strconv.FormatInt(job.SearchFrom.Unix()-1, 10)},
		"limit":  {strconv.Itoa(pageSize)},
	}
	failure := meta.List(ctx, &p.graph, "/"+url.PathEscape(job.Account.ID)+"/published_posts", query, job.Account.Token, maxPages, func(post entry) bool { return p.add(s, &post) })
	if failure != nil {
		return platforms.LookupResult{}, failure
	}
	return s.result()
}

// entry is a listed post.
type entry struct {
	ID          jsondoc.Text `json:"id"`
	Message     jsondoc.Text `json:"message"`
	CreatedTime jsondoc.Text `json:"created_time"`
	Permalink   jsondoc.Text `json:"permalink_url"`
	Attachments struct {
		Data []struct {
			attachment

			// Parts are the photos of an album.
			Parts struct {
				Data []attachment `json:"data"`
			} `json:"subattachments"`
		} `json:"data"`
	} `json:"attachments"`
}

// attachment is what a post shows, and what that leads to.
type attachment struct {
	MediaType jsondoc.Text `json:"media_type"`
	Target    struct {
		ID jsondoc.Text `json:"id"`
	} `json:"target"`
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
	own, alike listing.Matches
	unclear    bool
}

func newSearch(job platforms.Job) *search {
	return &search{
		job: job, shows: len(job.Content.Media) > 0, photos: job.FileIDs(meta.ValidID),
		own: listing.Matches{}, alike: listing.Matches{},
	}
}

// add looks at a listed post. It returns false for what is none.
func (p *Platform) add(s *search, post *entry) bool {
	found := listing.Match{ID: post.ID.String(), URL: p.postURL(post), At: meta.ParseTime(post.CreatedTime)}
	shown := post.shown()
	switch {
	case s.shows && shown.any(s.photos):
		s.own.Add(found)
	case listing.IsOld(&s.job, found.At, time.Second), !s.sameText(post.Message), listing.BelongsToOther(&s.job, found.ID):
	case s.shows:
		// Also if Facebook lists nothing that it shows: it may be the post.
		s.unclear = true
	case !shown.media || leadsAway.MatchString(s.job.Content.Text):
		s.alike.Add(found)
	}
	return meta.ValidID(found.ID)
}

// sameText reports whether a listed post has the job's text; a job with photos
// may have none.
func (s *search) sameText(listed jsondoc.Text) bool {
	if s.shows {
		return meta.SameCaption(s.job.Content.Text, listed)
	}
	return meta.SameText(s.job.Content.Text, listed)
}

// leadsAway finds what Facebook may take for an address. Facebook shows what an
// address leads to, which may be a video.
var leadsAway = regexp.MustCompile(`\S[./]\S`)

// shown is what is attached to a listed post.
type shown struct {
	// media says that a photo or a video is among it.
	media bool
	// targets are the ids of what it leads to: of the photos, one by one, and of
	// the album that they make.
	targets []string
}

// shown reads what is attached to a listed post.
func (e *entry) shown() (s shown) {
	for _, a := range e.Attachments.Data {
		for _, part := range append(a.Parts.Data, a.attachment) {
			kind := part.MediaType
			s.media = s.media || kind == "photo" || kind == "album" || kind == "video"
			if part.Target.ID != "" {
				s.targets = append(s.targets, part.Target.ID.String())
			}
		}
	}
	return s
}

// any reports whether one of the photos is shown.
func (s shown) any(photos []string) bool {
	return slices.ContainsFunc(photos, func(id string) bool { return slices.Contains(s.targets, id) })
}

// result names the earliest of the posts that fit.
func (s *search) result() (platforms.LookupResult, error) {
	found := s.alike
	switch {
	case len(s.own) > 0:
		found = s.own
	case s.unclear:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown,
			"the Page shows a post with the same text, and Facebook does not tell whether its photos are those of this one").Advise("compare them by hand")
	}
	r := found.Result()
	r.Certain = len(s.own) == 1
	return r, nil
}
