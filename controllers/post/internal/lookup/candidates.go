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
	"github.com/herald-social/herald/posting/delivery"
)

// Candidates holds the candidates for one target, or the error from listing them.
type Candidates struct {
	Target int
	Posts  []v1alpha1.Candidate
	Err    error
}

// listLimit is the number of posts to list: twice the number of candidates, since some belong to other posts.
const listLimit = 2 * v1alpha1.MostCandidates

// Candidates concurrently lists the posts that the targets' accounts have published since the calls in doubt. It omits
// posts that are known to belong to other targets.
func (l *Lookups) Candidates(ctx context.Context, f *delivery.Facts, targets []int) []Candidates {
	found := make([]Candidates, len(targets))
	var asked sync.WaitGroup
	for n, i := range targets {
		found[n].Target = i
		asked.Go(func() { found[n].Posts, found[n].Err = l.candidates(ctx, f, f.Target(i)) })
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

func (l *Lookups) ownedByOther(post *v1alpha1.Post, t *v1alpha1.TargetStatus, account, externalID string) bool {
	self := owner{post.UID, t.Index}
	return externalID == t.ExternalID || slices.ContainsFunc(t.Cards, func(c v1alpha1.CardStatus) bool { return c.ExternalID == externalID }) ||
		l.Owners.ownedByOther(t.Platform, account, externalID, self) || l.Owners.unconfirmedByOther(post.Namespace, t.Platform, externalID, self)
}

// candidate converts a listed post. It reports false if the schema rejects the id; it omits a URL that it rejects.
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
