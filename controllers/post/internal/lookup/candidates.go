// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// Candidates are the posts of the account of one target that may be the one in doubt, or why
// they cannot be listed.
type Candidates struct {
	Target int
	Posts  []v1alpha1.Candidate
	Err    error
}

// listLimit is how many posts are asked for: twice those that are kept, since some belong to
// other posts.
const listLimit = 2 * v1alpha1.MostCandidates

// Candidates lists, side by side, the posts that the accounts of targets have published since
// the calls in doubt. Those that are known to belong to other targets are left out.
func (l *Lookups) Candidates(ctx context.Context, f *delivery.Facts, targets []int) []Candidates {
	found := make([]Candidates, len(targets))
	var asked sync.WaitGroup
	for n, i := range targets {
		found[n].Target = i
		asked.Go(func() { found[n].Posts, found[n].Err = l.candidates(ctx, f, posting.Target(f.Post, i)) })
	}
	asked.Wait()
	return found
}

func (l *Lookups) candidates(ctx context.Context, f *delivery.Facts, t *v1alpha1.TargetStatus) ([]v1alpha1.Candidate, error) {
	asked, err := l.newAccountQuery(ctx, f, t)
	if err != nil {
		return nil, err
	}
	since := asked.since()
	if err := l.load(ctx, f.Connections[f.Post.Spec.Targets[t.Index].ConnectionRef.Name], since); err != nil {
		return nil, err
	}
	posts, err := asked.list(ctx, platforms.Recent{Since: since, Limit: listLimit})
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Candidate
	for i := range posts {
		if c, fits := candidate(&posts[i]); fits && !l.ownedByOther(f.Post, t, asked.account.ID, c.ExternalID) {
			out = append(out, c)
		}
	}
	return out, nil
}

// ownedByOther reports whether a post of an account is known to be another target's, or an earlier
// card of this one.
func (l *Lookups) ownedByOther(post *v1alpha1.Post, t *v1alpha1.TargetStatus, account, externalID string) bool {
	self := owner{post.UID, t.Index}
	return externalID == t.ExternalID || slices.ContainsFunc(t.Cards, func(c v1alpha1.CardStatus) bool { return c.ExternalID == externalID }) ||
		l.Owners.ownedByOther(t.Platform, account, externalID, self) || l.Owners.unconfirmedByOther(post.Namespace, t.Platform, externalID, self)
}

// candidate is a listed post as the status has it. It reports false for an id that the
// schema does not take. An address that it does not take is left out.
func candidate(p *platforms.ListedPost) (c v1alpha1.Candidate, fits bool) {
	c = v1alpha1.Candidate{ExternalID: p.ID, Text: text.Truncate(text.Fold(strings.ToValidUTF8(p.Text, "")), v1alpha1.MaxCandidateText)}
	if utf8.RuneCountInString(p.URL) <= v1alpha1.MaxCandidateURL {
		c.ExternalURL = p.URL
	}
	if !p.At.IsZero() {
		c.PostedAt = v1alpha1.NewTimePtr(p.At)
	}
	return c, p.ID != "" && utf8.RuneCountInString(p.ID) <= v1alpha1.MaxCandidateID
}
