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
	// pageSize is the number of posts per page of the listing. It is half the maximum of GET
	// /{page}/published_posts, because each post may have ten photos.
	pageSize = 50
	// maxPages bounds one lookup.
	maxPages = 64
)

// Lookup reads the state of a post that was created unpublished. For other jobs it searches the Page's published posts
// that were created at or after job.SearchFrom.
//
// An uploaded photo belongs to only one post, so posts with photos are identified by their photo ids, regardless of
// their text. It is not certain that Facebook lists a photo under its upload id. If another listed post has the same
// text, Lookup therefore returns an error: the job's post may still appear, and a user can compare them. A post without
// photos is identified by its text, among posts that do not belong to another job. An incomplete listing is an error; a
// complete one without the post does not prove its absence, see Capabilities.
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

type entry struct {
	ID          jsondoc.Text `json:"id"`
	Message     jsondoc.Text `json:"message"`
	CreatedTime jsondoc.Text `json:"created_time"`
	Permalink   jsondoc.Text `json:"permalink_url"`
	Attachments struct {
		Data []struct {
			attachment

			// Parts are an album's photos.
			Parts struct {
				Data []attachment `json:"data"`
			} `json:"subattachments"`
		} `json:"data"`
	} `json:"attachments"`
}

type attachment struct {
	MediaType jsondoc.Text `json:"media_type"`
	Target    struct {
		ID jsondoc.Text `json:"id"`
	} `json:"target"`
}

// search collects the Page's posts that may be the job's post.
type search struct {
	job platforms.Job
	// shows reports whether the job has photos. photos contains their ids.
	shows  bool
	photos []string
	// own are the posts with the job's photos, and alike those with its text. unclear is set if another post may be
	// the job's post.
	own, alike listing.Matches
	unclear    bool
}

func newSearch(job platforms.Job) *search {
	return &search{
		job: job, shows: len(job.Content.Media) > 0, photos: job.FileIDs(meta.ValidID),
		own: listing.Matches{}, alike: listing.Matches{},
	}
}

// add classifies a listed post. It returns false if the entry is invalid.
func (p *Platform) add(s *search, post *entry) bool {
	found := listing.Match{ID: post.ID.String(), URL: p.postURL(post), At: meta.ParseTime(post.CreatedTime)}
	shown := post.shown()
	switch {
	case s.shows && shown.any(s.photos):
		s.own.Add(found)
	case listing.IsOld(&s.job, found.At, time.Second), !s.sameText(post.Message), listing.BelongsToOther(&s.job, found.ID):
	case s.shows:
		// Posts whose attachments Facebook does not list also end up here; one of them may be this job's post.
		s.unclear = true
	case !shown.media || leadsAway.MatchString(s.job.Content.Text):
		s.alike.Add(found)
	}
	return meta.ValidID(found.ID)
}

// sameText reports whether a listed post has the job's text, which may be empty if the job has photos.
func (s *search) sameText(listed jsondoc.Text) bool {
	if s.shows {
		return meta.SameCaption(s.job.Content.Text, listed)
	}
	return meta.SameText(s.job.Content.Text, listed)
}

// leadsAway matches text that Facebook may treat as a URL. Facebook attaches the content at the URL, which may be a
// video.
var leadsAway = regexp.MustCompile(`\S[./]\S`)

type shown struct {
	// media reports whether there is a photo or a video.
	media bool
	// targets are the ids of the attachments' targets: each photo, and the album that contains them.
	targets []string
}

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

func (s shown) any(photos []string) bool {
	return slices.ContainsFunc(photos, func(id string) bool { return slices.Contains(s.targets, id) })
}

// result returns the earliest of the matching posts.
func (s *search) result() (platforms.LookupResult, error) {
	found := s.alike
	switch {
	case len(s.own) > 0:
		found = s.own
	case s.unclear:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown,
			"the Page has a post with the same text, but Facebook does not show whether its photos are those of this post").Advise("compare them manually")
	}
	r := found.Result()
	r.Certain = len(s.own) == 1
	return r, nil
}
