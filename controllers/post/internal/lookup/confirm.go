// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// Confirm looks up the post that a user entered for a target. It may be any post, even one of another team. The
// platform package parses a URL. If the URL has no id, Confirm searches the account's posts. Only a connection with a
// verified account can confirm that account's posts. If the platform does not respond, nothing is confirmed.
func (l *Lookups) Confirm(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus, r attempt.Resolution) delivery.Confirmation {
	found := delivery.Confirmation{ExternalID: r.ExternalID}
	asked, unreachable := l.newAccountQuery(ctx, f, t)
	if r.ExternalURL != "" {
		var err error
		if found, err = asked.read(ctx, r.ExternalURL, unreachable); err != nil {
			found.Refused = err.Error()
			return found
		}
	}
	to, confirms := f.Platforms[t.Platform].(platforms.Confirmer)
	if found.ExternalID == "" || !confirms || unreachable != nil {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, asked.timeout)
	defer cancel()
	switch whose, err := to.Confirm(ctx, asked.account, found.ExternalID); {
	case err != nil:
	case whose == platforms.OwnershipConfirmed:
		found.AccountID = asked.account.ID
	case whose == platforms.OwnershipForeign:
		found.Refused = fmt.Sprintf("%s says that post %q does not belong to account %s; answer with the account's own post, or that nothing was sent",
			t.Platform, found.ExternalID, asked.account.ID)
	}
	return found
}

type accountQuery struct {
	facts   *delivery.Facts
	target  *v1alpha1.TargetStatus
	account platforms.Account
	timeout time.Duration
}

// newAccountQuery prepares a query as a target's account. The error explains to the user why the platform cannot be
// queried; the query then contains the facts that are known without it.
func (l *Lookups) newAccountQuery(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus) (accountQuery, error) {
	var name string
	if int(t.Index) < len(f.Post.Spec.Targets) {
		name = f.Post.Spec.Targets[t.Index].ConnectionRef.Name
	}
	conn := f.Connections[name]
	timing, known := f.Timing(t.Platform)
	q := accountQuery{facts: f, target: t, timeout: timing.CallTimeout}
	if t.Attempt != nil {
		q.account.ID = t.Attempt.AccountID
	}
	switch {
	case !known:
		return q, fmt.Errorf("this installation does not support the platform %q", t.Platform)
	case conn == nil:
		return q, fmt.Errorf("connection %q no longer exists", name)
	case conn.Spec.Platform != t.Platform, t.Attempt != nil && !attempt.SameAccount(t.Attempt, conn.Spec.AccountID):
		return q, fmt.Errorf("connection %q now belongs to another account", name)
	}
	q.account = platforms.Account{ID: conn.Spec.AccountID, Username: conn.Status.Username}
	if !conn.Status.Verified() {
		return q, fmt.Errorf("connection %q must be reconnected", name)
	}
	token, err := l.Token(ctx, conn)
	if err != nil {
		return q, fmt.Errorf("the credentials of connection %q cannot be used", name)
	}
	q.account.Token = token
	return q, nil
}

// since returns the earliest time when the post in doubt could have been published. For a copy from a backup, whose
// call is unknown, it is one minute before the post was due.
func (q *accountQuery) since() time.Time {
	if q.target.Attempt != nil {
		return attempt.SearchFrom(q.target.Attempt)
	}
	return q.facts.Due().Add(-time.Minute)
}

const (
	// lookback extends the search for a post by its URL: Meta does not document whether it lists the creation time of the
	// container, which may be a day older.
	lookback = 24 * time.Hour
	// maxByAddress is the number of posts searched for a URL: one page of any platform's listing.
	maxByAddress = 100
	// longestShown is the maximum length of a URL in a message, in characters. It keeps the remedy after the URL
	// readable.
	longestShown = 200
)

// read finds the post at a URL. unreachable is the reason why the platform cannot be queried, or nil. The error is for
// the user.
func (q *accountQuery) read(ctx context.Context, address string, unreachable error) (found delivery.Confirmation, _ error) {
	shown := text.Truncate(address, longestShown)
	reader, reads := q.facts.Platforms[q.target.Platform].(platforms.PostParser)
	if !reads {
		return found, fmt.Errorf("%q is not a URL of %s that Herald can read; answer with the id of the post", shown, q.target.Platform)
	}
	named, ok := reader.ParsePost(q.account, address)
	if !ok {
		return found, fmt.Errorf("%q does not identify a post on %s; answer with %s", shown, q.target.Platform.Title(), reader.PostHint())
	}
	found.ExternalID, found.ExternalURL = named.ID, named.URL
	if named.ID != "" {
		return found, nil
	}
	listed, err := q.byCode(ctx, reader, named.Code, unreachable)
	switch {
	case err == nil:
		found.ExternalID, found.ExternalURL = listed.ID, listed.URL
		return found, nil
	case named.Other:
		return found, nil
	}
	return found, fmt.Errorf("the post of %q was not found: %w. Check that the URL belongs to a post of this account. If it does, answer that it was published, without the URL (\"%d=posted\")",
		shown, err, q.target.Index)
}

var errUnlisted = errors.New("none of the account's latest posts has this URL")

func (q *accountQuery) byCode(ctx context.Context, reader platforms.PostParser, code string, unreachable error) (none platforms.ListedPost, _ error) {
	if unreachable != nil {
		return none, unreachable
	}
	posts, err := q.list(ctx, platforms.Recent{Since: q.since().Add(-lookback), Limit: maxByAddress})
	if err != nil {
		return none, err
	}
	for i := range posts {
		if named, ok := reader.ParsePost(q.account, posts[i].URL); ok && named.Code == code {
			return posts[i], nil
		}
	}
	return none, errUnlisted
}

func (q *accountQuery) list(ctx context.Context, which platforms.Recent) ([]platforms.ListedPost, error) {
	lister, lists := q.facts.Platforms[q.target.Platform].(platforms.Lister)
	if !lists {
		return nil, fmt.Errorf("%s lists no posts", q.target.Platform)
	}
	which.Replies = len(q.target.Cards) > 0
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	return lister.RecentPosts(ctx, q.account, which) //nolint:wrapcheck // the error comes from the platform
}
