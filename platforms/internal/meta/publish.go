// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
)

// Publish makes the prepared container of a job visible by one call.
func (c *Containers) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if !ValidID(job.Checkpoint) {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, "the post was not prepared")}
	}
	result, _ := c.Graph.Publish(ctx, client.Call{
		Action: "publish", Path: c.AccountPath(&job.Account, c.PublishEdge), Token: job.Account.Token.Access,
		Body: client.Fields(url.Values{"creation_id": {job.Checkpoint}}), Timeout: c.PublishTimeout,
	})
	switch result.Outcome {
	case platforms.Posted:
		result.ExternalURL, result.PostedAt = c.permalink(ctx, &job, result.ExternalID)
	case platforms.Refused:
		c.doubleCheck(ctx, &job, &result)
	case platforms.NotSent, platforms.Accepted, platforms.Unknown:
	}
	if result.Outcome == platforms.Unknown {
		c.Cache.recordUncertain(job.Checkpoint)
	}
	return result
}

// doubleCheck asks the container about a refusal that may be about it: graphs also
// refuse to publish what an earlier call has published, and document no words for
// that. What the container says decides whether the same one is published again.
// Only its own word that it is not published lets the refusal stand; without one the
// outcome is unknown. Refusals that are about the account ask nothing here: Lookup,
// which follows every refusal, asks the container once.
func (c *Containers) doubleCheck(ctx context.Context, job *platforms.Job, refused *platforms.Result) {
	said, ok := errors.AsType[*Error](refused.Err.Err)
	if !ok || !said.Kind().OfRequest() {
		return
	}
	kind := said.Kind()
	passes := kind == KindNotReady || kind == KindLost
	if passes {
		c.notYet(refused.Err)
	}
	found, _, bad := c.State(ctx, job, job.Checkpoint)
	refused.Unpublished = bad == nil && found != StatePublished && found != StateUnread
	switch {
	case bad != nil, found == StatePublished, found == StateUnread && !c.Cache.isUnpublished(job.Checkpoint, c.Clock.Now()):
		refused.Outcome = platforms.Unknown
	case passes && found == StateFinished:
		c.Cache.recordRefused(job.Checkpoint, c.Clock.Now())
	case found != StateFinished && found != StateInProgress && refused.Err.Class == platforms.ClassPermanent:
		// The container has ended unpublished, which another one mends, or the graph
		// does not show it yet.
		c.notYet(refused.Err)
	}
}

// notYet rewrites a refusal as one that passes: the same container may be published later.
func (c *Containers) notYet(e *platforms.Error) {
	e.Class, e.Subject, e.Problem, e.Remedy = platforms.ClassTransient, "", c.Name+" cannot publish the post yet", ""
}

// permalink reads the address of a post and when it was published. Without an
// answer the post has no address here; it is published all the same.
func (c *Containers) permalink(ctx context.Context, job *platforms.Job, id string) (string, time.Time) {
	body, _ := c.Call(ctx, client.Call{
		Action: "permalink", Path: c.VersionedPath("/" + url.PathEscape(id) + "?fields=id,permalink,timestamp"), Token: job.Account.Token.Access,
		Timeout: PermalinkTimeout,
	}, ThePost)
	post, _ := jsondoc.Decode[Post](body)
	return post.Permalink.Web(), ParseTime(post.Timestamp)
}

// Post is a listed post.
type Post struct {
	ID        jsondoc.Text `json:"id"`
	Timestamp jsondoc.Text `json:"timestamp"`
	Permalink jsondoc.Text `json:"permalink"`
	MediaType jsondoc.Text `json:"media_type"`
	// Caption and ProductType are Instagram's.
	Caption     jsondoc.Text `json:"caption"`
	ProductType jsondoc.Text `json:"media_product_type"`
	// Text, IsReply and RepliedTo are those of Threads.
	Text      jsondoc.Text `json:"text"`
	IsReply   jsondoc.Flag `json:"is_reply"`
	RepliedTo struct {
		ID jsondoc.Text `json:"id"`
	} `json:"replied_to"`
}

const (
	// pageSize is the greatest limit of the listings.
	pageSize = 100
	// MaxPages bounds one lookup: an account may publish 250 posts in 24 hours.
	MaxPages = 32
)

// Listing is where a job's post is listed.
type Listing struct {
	// Edge is the last segment of the account's path, and Fields what is asked
	// of each post.
	Edge, Fields string
	// Same reports whether a listed post has the job's content.
	Same func(*Post) bool
}

// Lookup asks the container of the job whether it was published, and finds the
// post that it became among the account's posts. Only the container's word
// counts for absence; without a container, or if the graph has forgotten it, the
// listing alone is searched.
func (c *Containers) Lookup(ctx context.Context, job platforms.Job, where Listing) (platforms.LookupResult, error) {
	if ValidID(job.Checkpoint) {
		found, _, bad := c.State(ctx, &job, job.Checkpoint)
		if bad != nil {
			return platforms.LookupResult{}, bad.Error
		}
		switch found {
		case StatePublished:
			return c.findPublished(ctx, &job, where)
		case StateFinished, StateError, StateExpired:
			return platforms.LookupResult{Proof: true}, nil
		case StateInProgress:
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, "%s is not done with the post", c.Name)
		case StateUnread:
		}
	}
	matches, bad := c.search(ctx, &job, where, job.SearchFrom)
	if bad != nil {
		return platforms.LookupResult{}, bad
	}
	return matches.Result(), nil
}

// findPublished finds the post that a published container became. The container has
// ended all doubt, so that what is looked for is the post's id alone. Where the
// listing does not give it for a while, gives several, or cannot be read for longer,
// the post is published without one: a wrong id would be worse. Of a tree the id is
// needed, since the next card hangs from it: without it the outcome is unknown.
//
// Meta's references call the time that is listed the "creation date" of a post and
// do not say whether that is its container's. What is as old as the container is the
// post, then, if nothing newer is listed.
func (c *Containers) findPublished(ctx context.Context, job *platforms.Job, where Listing) (platforms.LookupResult, error) {
	now := c.Clock.Now()
	known := c.Cache.observePublished(job.Checkpoint, now)
	waited := known >= idWait
	from := job.SearchFrom
	if at := c.Cache.createdAt(job.Checkpoint); !at.IsZero() && at.Before(from) {
		from = at
	}
	matches, bad := c.search(ctx, job, where, from)
	if newer := matches.Since(job.SearchFrom.Truncate(time.Second)); len(newer) > 0 || !waited {
		matches = newer
	}
	isTree := job.Content.Category == v1alpha1.CategoryTree
	switch {
	case bad == nil && (len(matches) == 1 || len(matches) > 1 && isTree):
		return matches.Result(), nil
	case !isTree && (bad == nil && waited || known >= unreadWait):
		return platforms.LookupResult{Matches: 1, Certain: true}, nil
	case bad != nil:
		// Whatever keeps the listing from being read, the post is out.
		unread := *bad
		unread.Class = platforms.ClassUnknown
		return platforms.LookupResult{}, &unread
	case len(matches) > 1:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, "%s has published the post and lists several that may be it", c.Name)
	default:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, "%s has published the post but does not list it yet", c.Name)
	}
}

// search looks for the job's post in a listing, among what was published at from or
// later.
func (c *Containers) search(ctx context.Context, job *platforms.Job, where Listing, from time.Time) (listing.Matches, *platforms.Error) {
	query := url.Values{
		"fields": {where.Fields},
		"since":  {strconv.FormatInt(from.Unix()-1, 10)},
		"limit":  {strconv.Itoa(pageSize)},
	}
	since := *job
	since.SearchFrom = from
	matches := listing.Matches{}
	failure := List(ctx, &c.Graph, "/"+url.PathEscape(job.Account.ID)+"/"+where.Edge, query, job.Account.Token, MaxPages, func(post Post) bool {
		id, at := post.ID.String(), ParseTime(post.Timestamp)
		if !listing.IsOld(&since, at, time.Second) && where.Same(&post) && !listing.BelongsToOther(job, id) {
			matches.Add(listing.Match{ID: id, URL: post.Permalink.Web(), At: at})
		}
		return ValidID(id)
	})
	if failure != nil {
		return nil, failure
	}
	return matches, nil
}
