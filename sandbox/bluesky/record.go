// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// The collections of a repository.
const (
	posts    = "app.bsky.feed.post"
	profiles = "app.bsky.actor.profile"
)

// detail is the stored data of a post.
type detail struct {
	CID    string          `json:"cid"`
	Record json.RawMessage `json:"record"`
}

func detailOf(post state.Post) detail {
	var out detail
	_ = json.Unmarshal(post.Detail, &out) // this package encoded it
	return out
}

// uri returns the address of an account's post.
func uri(did, key string) string { return "at://" + did + "/" + posts + "/" + key }

// write is the input of com.atproto.repo.putRecord, createRecord and deleteRecord, whose fields differ in what is
// required.
type write struct {
	Repo       string          `json:"repo"`
	Collection string          `json:"collection"`
	Key        string          `json:"rkey"`
	Validate   *bool           `json:"validate"`
	Record     json.RawMessage `json:"record"`
	SwapRecord json.RawMessage `json:"swapRecord"`
	SwapCommit *string         `json:"swapCommit"`
}

// readWrite reads the input of a write to the requester's own repository.
func (p *Platform) readWrite(r *faults.Request, account state.Account) (write, *problem) {
	var in write
	if with := p.decode(r, &in); with != nil {
		return in, with
	}
	repo, found := p.account(in.Repo)
	switch {
	case !found:
		return in, &problem{http.StatusForbidden, "AccountNotFound", "Account not found"}
	case repo.Key != account.Key:
		return in, problemFor(http.StatusUnauthorized)
	case in.Collection != posts:
		return in, invalid("the collection " + in.Collection + " is not simulated")
	case in.SwapCommit != nil || in.Validate != nil && !*in.Validate:
		return in, invalid("swapCommit, and records that are not validated, are not simulated")
	}
	return in, nil
}

// putRecord implements com.atproto.repo.putRecord, which creates a record or replaces one. swapRecord is the id of the
// record to replace, or null if there must not be one. Only creating is simulated. A record that equals the existing
// one changes nothing, regardless of swapRecord (packages/pds/src/api/com/atproto/repo/putRecord.ts).
func (p *Platform) putRecord(w http.ResponseWriter, r *faults.Request) {
	p.writes(w, r, func(in *write, there string) *problem {
		var swap *string
		swaps := len(in.SwapRecord) > 0
		if swaps && json.Unmarshal(in.SwapRecord, &swap) != nil {
			return invalid("swapRecord is neither a CID nor null")
		}
		switch {
		case in.Key == "":
			return invalid("Missing required key \"rkey\"")
		case swaps && swap == nil && there != "", swaps && swap != nil && *swap != there:
			return named("InvalidSwap", "Record was at "+cmp.Or(there, "null"))
		case there != "":
			return invalid("replacing a record is not simulated; create one with swapRecord null")
		default:
			return nil
		}
	})
}

// createRecord implements com.atproto.repo.createRecord, which chooses a key if there is none in the request.
func (p *Platform) createRecord(w http.ResponseWriter, r *faults.Request) {
	p.writes(w, r, func(in *write, there string) *problem {
		switch {
		case len(in.SwapRecord) > 0:
			return invalid("swapRecord has no effect")
		case there != "":
			return invalid("there is a record under this key")
		default:
			return nil
		}
	})
}

// writes creates a post. check validates the request; its argument there is the id of the existing record under the
// key, or "".
func (p *Platform) writes(w http.ResponseWriter, r *faults.Request, check func(in *write, there string) *problem) {
	account, ok := p.authorized(w, r)
	if !ok {
		return
	}
	in, with := p.readWrite(r, account)
	if with != nil {
		p.fail(w, with)
		return
	}
	draft, files, with := p.draft(account, in.Record)
	if with == nil && in.Key != "" && !isKey(in.Key) {
		with = wrong("Invalid record key " + in.Key)
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	draft.NewID = func(at state.Stamp) string { return cmp.Or(in.Key, newKey(at)) }
	unlock := p.writing.Lock(account.ID)
	defer unlock()
	post, found := p.Store.Post(Name, in.Key)
	there := detailOf(post).CID
	switch {
	case found && post.AccountID != account.ID:
		with = p.broken("two accounts have a post under the key", in.Key, errors.New("the sandbox supports one"))
	case found && there == detailOf(state.Post{Detail: draft.Detail}).CID:
		p.written(w, account, post, false)
		return
	default:
		with = check(&in, there)
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	p.publish(w, account, draft, files)
}

// publish creates a post, and responds with its address and id.
func (p *Platform) publish(w http.ResponseWriter, account state.Account, draft state.Draft, files []state.Container) {
	post, err := p.Store.Publish(account.Key, draft)
	if quota, full := errors.AsType[*state.QuotaError](err); full {
		p.limited(w, writePoints*quota.Quota, quota.Resets.Sub(p.Clock.Now()))
		return
	}
	if err == nil {
		err = p.use(files)
	}
	if with := p.broken("a post could not be kept", account.ID, err); with != nil {
		p.fail(w, with)
		return
	}
	p.written(w, account, post, true)
}

// written responds with a record's address and id.
func (p *Platform) written(w http.ResponseWriter, account state.Account, post state.Post, changed bool) {
	out := map[string]any{"uri": uri(account.ID, post.ID), "cid": detailOf(post).CID, "validationStatus": "valid"}
	if changed {
		out["commit"] = commit(post)
	}
	p.pointHeaders(w, account)
	p.write(w, http.StatusOK, out)
}

// commit returns made-up values for the commit of a record's last change, because there is no real repository.
func commit(post state.Post) map[string]string {
	return map[string]string{"cid": recordCID([]byte(uri(post.AccountID, post.ID))), "rev": newKey(post.Stamp)}
}

// deleteRecord implements com.atproto.repo.deleteRecord. Deleting a nonexistent record succeeds.
func (p *Platform) deleteRecord(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r)
	if !ok {
		return
	}
	in, with := p.readWrite(r, account)
	if with == nil && (len(in.Record) > 0 || len(in.SwapRecord) > 0) {
		with = invalid("record has no effect, and swapRecord is not simulated")
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	post, found := p.Store.Post(Name, in.Key)
	if !found || post.AccountID != account.ID {
		p.write(w, http.StatusOK, map[string]any{})
		return
	}
	if err := p.Store.Delete(account.Key, in.Key); err != nil && !errors.Is(err, state.ErrNoPost) {
		p.fail(w, p.broken("a post could not be deleted", in.Key, err))
		return
	}
	p.write(w, http.StatusOK, map[string]any{"commit": commit(post)})
}

// postAt returns the post at an address, which may name the account by its handle.
func (p *Platform) postAt(address string) (state.Post, bool) {
	repo, key, found := strings.Cut(strings.TrimPrefix(address, "at://"), "/"+posts+"/")
	account, known := p.account(repo)
	post, exists := p.Store.Post(Name, key)
	return post, found && known && exists && post.AccountID == account.ID
}
