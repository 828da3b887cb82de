// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const getRecord = "/xrpc/com.atproto.repo.getRecord?"

// listed is a record in a response.
type listed struct {
	URI   jsondoc.Text `json:"uri"`
	CID   jsondoc.Text `json:"cid"`
	Value struct {
		Text      jsondoc.Text `json:"text"`
		CreatedAt jsondoc.Text `json:"createdAt"`
		Reply     struct {
			Root struct {
				URI jsondoc.Text `json:"uri"`
				CID jsondoc.Text `json:"cid"`
			} `json:"root"`
		} `json:"reply"`
	} `json:"value"`
}

func (l *listed) strongRef() strongRef { return strongRef{l.URI.String(), l.CID.String()} }

// key returns the record's key if it is one of the account's posts, and "" otherwise.
func (l *listed) key(did string) string {
	key, ok := strings.CutPrefix(l.URI.String(), "at://"+did+"/"+collection+"/")
	if !ok || !isKey(key) || l.CID == "" {
		return ""
	}
	return key
}

// record reads one of an account's posts. Only the server's own error proves that the post does not exist; any other
// error is a failure.
func (p *Platform) record(ctx context.Context, account platforms.Account, key string) (post listed, found bool, failure *platforms.Error) {
	query := url.Values{"repo": {account.ID}, "collection": {collection}, "rkey": {key}}
	resp, failure := p.read(ctx, "look_up", getRecord+query.Encode(), account.Token)
	switch {
	case failure != nil:
		return listed{}, false, failure
	case resp.Status == http.StatusBadRequest && errorName(resp) == recordNotFound:
		return listed{}, false, nil
	case resp.Status != http.StatusOK:
		failure, _ := p.classify(resp)
		return listed{}, false, failure
	}
	post, _ = jsondoc.Decode[listed](resp.Body)
	if post.key(account.ID) != key {
		return listed{}, false, p.api.Nonsense(resp.Status, nil)
	}
	return post, true, nil
}

// Lookup reads the record under the job's key.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	key := recordKey(job.Key)
	post, found, failure := p.record(ctx, job.Account, key)
	switch {
	case failure != nil:
		return platforms.LookupResult{}, failure
	case !found:
		return platforms.LookupResult{Proof: true}, nil
	}
	return platforms.LookupResult{
		Matches: 1, Certain: true, ExternalID: key, ExternalURL: p.postURL(job.Account.ID, key), PostedAt: post.Value.CreatedAt.Time(),
	}, nil
}

// Confirm reads a post of the account by its key. Other accounts' posts are in other repositories, so they are not
// found.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	if !isKey(externalID) {
		return platforms.OwnershipUnknown, nil
	}
	_, found, failure := p.record(ctx, account, externalID)
	switch {
	case failure != nil:
		return platforms.OwnershipUnknown, failure
	case !found:
		return platforms.OwnershipUnknown, nil
	}
	return platforms.OwnershipConfirmed, nil
}
