// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
)

const (
	// pageSize is the maximum page size of GET /api/v1/accounts/:id/statuses.
	pageSize = 40
	// maxPages bounds one lookup. An account may create 300 posts in three hours (app/lib/rate_limiter.rb).
	maxPages = 100
)

// page reads one page of the account's posts, newest first. They are older than the post with the id before, if that is
// set.
func (p *Platform) page(ctx context.Context, account platforms.Account, before string) ([]status, *platforms.Error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "exclude_reblogs": {"true"}}
	if before != "" {
		query.Set("max_id", before)
	}
	resp, failure := p.read(ctx, "list", "/api/v1/accounts/"+url.PathEscape(localID(account))+"/statuses?"+query.Encode(), account.Token)
	if failure != nil {
		return nil, failure
	}
	posts, ok := jsondoc.DecodeList[status](resp.Body)
	if !ok || slices.ContainsFunc(posts, func(s status) bool { return !validID(s.ID.String()) }) {
		return nil, p.api.NoList()
	}
	return posts, nil
}

// each calls visit for the account's posts since the job's SearchFrom, until visit returns true. Servers filter pages,
// so a page may be shorter than requested, and only an empty page marks the end.
func (p *Platform) each(ctx context.Context, job *platforms.Job, visit func(s *status) (done bool, failure *platforms.Error)) *platforms.Error {
	before := ""
	for range maxPages {
		posts, failure := p.page(ctx, job.Account, before)
		if failure != nil || len(posts) == 0 {
			return failure
		}
		for i := range posts {
			s := &posts[i]
			if listing.IsOld(job, s.created(), time.Millisecond) || s.Reblog.Present || listing.BelongsToOther(job, s.ID.String()) {
				continue
			}
			if done, failure := visit(s); done || failure != nil {
				return failure
			}
		}
		last := &posts[len(posts)-1]
		if listing.IsOld(job, last.created(), time.Millisecond) {
			return nil
		}
		if last.ID.String() == before {
			return p.api.NoList()
		}
		before = last.ID.String()
	}
	return p.api.NoList()
}

// withMedia returns the account's post that has one of the files, or nil. A file belongs to at most one post.
func (p *Platform) withMedia(ctx context.Context, job *platforms.Job, ids []string) (found *status, failure *platforms.Error) {
	failure = p.each(ctx, job, func(s *status) (bool, *platforms.Error) {
		for _, m := range s.Media {
			if slices.Contains(ids, m.ID.String()) {
				found = s
			}
		}
		return found != nil, nil
	})
	return found, failure
}

// Lookup searches the account's posts. If the server still has the first of the job's files, and it belongs to no post,
// the job was not published.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	ids := job.FileIDs(validID)
	if ids == nil {
		return p.lookupText(ctx, &job)
	}
	found, failure := p.withMedia(ctx, &job, ids)
	switch {
	case failure != nil:
		return platforms.LookupResult{}, failure
	case found != nil:
		return platforms.LookupResult{
			Matches: 1, Certain: true, ExternalID: found.ID.String(), ExternalURL: found.URL.Web(), PostedAt: found.created(),
		}, nil
	}
	state, failure := p.mediaState(ctx, job.Account.Token, ids[0])
	if failure != nil && failure.Class != platforms.ClassPermanent {
		return platforms.LookupResult{}, failure
	}
	return platforms.LookupResult{Proof: failure == nil && state != stateGone}, nil
}

// lookupText searches for posts that have the same text, number of files and parent as the job.
func (p *Platform) lookupText(ctx context.Context, job *platforms.Job) (platforms.LookupResult, error) {
	// If a post has a content warning but no text, Mastodon publishes the warning as the text
	// (app/services/post_status_service.rb).
	want := cmp.Or(text.Fold(job.Content.Text), text.Fold(job.Content.Mastodon.ContentWarning))
	matches := listing.Matches{}
	failure := p.each(ctx, job, func(s *status) (bool, *platforms.Error) {
		if s.InReplyTo.String() != job.Content.InReplyTo || len(s.Media) != len(job.Content.Media) {
			return false, nil
		}
		source, failure := p.source(ctx, job.Account.Token, s.ID.String())
		if failure == nil && source != nil && text.Fold(*source) == want {
			matches.Add(listing.Match{ID: s.ID.String(), URL: s.URL.Web(), At: s.created()})
		}
		return false, failure
	})
	if failure != nil {
		return platforms.LookupResult{}, failure
	}
	return matches.Result(), nil
}

// source returns the text of one of the account's posts as it was sent, or nil if the post has since been deleted (GET
// /api/v1/statuses/:id/source).
func (p *Platform) source(ctx context.Context, token platforms.Token, id string) (*string, *platforms.Error) {
	api, failure := p.at(token)
	if failure != nil {
		return nil, failure
	}
	resp, err := api.Do(ctx, client.Call{Action: "look_up", Path: "/api/v1/statuses/" + url.PathEscape(id) + "/source", Token: token.Access, Header: english(), Timeout: readTimeout})
	switch {
	case err != nil:
		return nil, api.Unanswered(err)
	case resp.Status == http.StatusNotFound && errorText(resp) != "":
		return nil, nil
	case resp.Status != http.StatusOK:
		failure, _ := p.classify(resp)
		return nil, failure
	}
	doc, _ := jsondoc.Decode[struct {
		ID   jsondoc.Text `json:"id"`
		Text jsondoc.Text `json:"text"`
	}](resp.Body)
	if doc.ID.String() != id {
		return nil, p.api.Nonsense(resp.Status, nil)
	}
	return new(doc.Text.String()), nil
}

// Confirm reads a post by its id and compares its author with the account. A post that the server does not return may
// have been deleted, or may not be visible to the account.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	if !validID(externalID) {
		return platforms.OwnershipUnknown, nil
	}
	api, failure := p.at(account.Token)
	if failure != nil {
		return platforms.OwnershipUnknown, failure
	}
	resp, err := api.Do(ctx, client.Call{Action: "confirm", Path: "/api/v1/statuses/" + url.PathEscape(externalID), Token: account.Token.Access, Header: english(), Timeout: readTimeout})
	switch {
	case err != nil:
		return platforms.OwnershipUnknown, api.Unanswered(err)
	case resp.Status == http.StatusNotFound && errorText(resp) != "":
		return platforms.OwnershipUnknown, nil
	case resp.Status != http.StatusOK:
		failure, _ := p.classify(resp)
		return platforms.OwnershipUnknown, failure
	}
	found, _ := jsondoc.Decode[status](resp.Body)
	switch {
	case found.ID.String() != externalID || found.Account.ID == "":
		return platforms.OwnershipUnknown, p.api.Nonsense(resp.Status, nil)
	case found.Account.ID.String() == localID(account):
		return platforms.OwnershipConfirmed, nil
	}
	return platforms.OwnershipForeign, nil
}
