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

// Publish makes a job's prepared container visible with one call.
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

// doubleCheck reads the container after a refusal that may be about it, because graphs also refuse to publish a
// container that an earlier call has published, and do not document the error for this case. The container's state
// decides whether another call is made for it. The refusal is final only if the state shows that the container is not
// published; otherwise the outcome is unknown. After a refusal that is about the account, the state is not read here:
// Lookup, which follows every refusal, reads it once.
func (c *Containers) doubleCheck(ctx context.Context, job *platforms.Job, refused *platforms.Result) {
	graphErr, ok := errors.AsType[*Error](refused.Err.Err)
	if !ok || !graphErr.Kind().OfRequest() {
		return
	}
	kind := graphErr.Kind()
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
		// The container can no longer be published, so a new one is needed, or the graph does not return it
		// yet.
		c.notYet(refused.Err)
	}
}

// notYet turns a refusal into a transient error: the same container may be published later.
func (c *Containers) notYet(e *platforms.Error) {
	e.Class, e.Subject, e.Problem, e.Remedy = platforms.ClassTransient, "", c.Name+" cannot publish the post yet", ""
}

// permalink reads a post's permalink and time. If there is no response, both are empty; the post is published
// nevertheless.
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
	// Caption and ProductType exist only on Instagram.
	Caption     jsondoc.Text `json:"caption"`
	ProductType jsondoc.Text `json:"media_product_type"`
	// Text, IsReply and RepliedTo exist only on Threads.
	Text      jsondoc.Text `json:"text"`
	IsReply   jsondoc.Flag `json:"is_reply"`
	RepliedTo struct {
		ID jsondoc.Text `json:"id"`
	} `json:"replied_to"`
}

const (
	// pageSize is the listings' maximum page size.
	pageSize = 100
	// MaxPages bounds one lookup. An account may publish 250 posts in 24 hours.
	MaxPages = 32
)

// Listing describes the listing that contains a job's post.
type Listing struct {
	// Edge is the last path segment, under the account. Fields are the fields to request for each post.
	Edge, Fields string
	// Same reports whether a listed post has the job's content.
	Same func(*Post) bool
}

// Lookup reads the state of the job's container and, if it is published, finds its post in the account's listing. Only
// the container's state proves absence. If there is no container, or the graph does not return it, only the listing is
// searched.
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
			return platforms.LookupResult{}, platforms.Errorf(platforms.ClassTransient, "%s has not finished processing the post", c.Name)
		case StateUnread:
		}
	}
	matches, bad := c.search(ctx, &job, where, job.SearchFrom)
	if bad != nil {
		return platforms.LookupResult{}, bad
	}
	return matches.Result(), nil
}

// findPublished finds the post of a published container. The outcome is certain; only the post's id is missing. If the
// post is missing from the listing for idWait, if there are several candidates, or if the listing cannot be read for
// unreadWait, the post is reported without an id, because a wrong id would be worse. A card of a tree needs its id,
// because the next card replies to it; without the id, its outcome is unknown.
//
// Meta's references call the listed time a post's "creation date" and do not document whether that is its container's
// creation time. If no newer post is listed, a post as old as the container is therefore taken to be the job's post.
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
		// The post is published, regardless of the listing's error.
		unread := *bad
		unread.Class = platforms.ClassUnknown
		return platforms.LookupResult{}, &unread
	case len(matches) > 1:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, "%s has published the post and lists several that may be it", c.Name)
	default:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, "%s has published the post but does not list it yet", c.Name)
	}
}

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
