// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// keyLife is how long an Idempotency-Key is kept (methods/statuses).
const keyLife = time.Hour

// keyUse is the post that was created with an Idempotency-Key.
type keyUse struct {
	post string
	at   time.Time
}

// detail is the stored data of a post, apart from its text.
type detail struct {
	Spoiler    string `json:"spoiler,omitempty"`
	Visibility string `json:"visibility"`
	Language   string `json:"language,omitempty"`
	Sensitive  bool   `json:"sensitive,omitempty"`
}

func detailOf(post state.Post) detail {
	var out detail
	_ = json.Unmarshal(post.Detail, &out) // this package encoded it
	return out
}

// createStatus handles POST /api/v1/statuses. With an Idempotency-Key that was used within the last hour, it returns
// the earlier post, regardless of the other parameters, or 404 if that post has been deleted since
// (app/services/post_status_service.rb).
func (p *Platform) createStatus(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "write", "write:statuses")
	if !ok {
		return
	}
	key := ""
	if given := r.Header.Get("Idempotency-Key"); given != "" {
		key = account.ID + "/" + given
		unlock := p.posting.Lock(key)
		defer unlock()
		if earlier, used := p.used(key); used {
			p.repeat(w, r, account, earlier)
			return
		}
	}
	draft, with := p.readStatusParams(r, account)
	var post state.Post
	if with == nil {
		var err error
		if post, err = p.Store.Publish(account.Key, draft); err != nil {
			p.refusePost(w, account, err)
			return
		}
	}
	p.quotaHeaders(w, account)
	if with != nil {
		p.fail(w, with)
		return
	}
	if key != "" {
		p.mu.Lock()
		p.keys[key] = keyUse{post.ID, p.Clock.Now()}
		p.mu.Unlock()
	}
	p.write(w, http.StatusOK, p.status(r.Request, account, post))
}

func (p *Platform) used(key string) (id string, used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	use, found := p.keys[key]
	return use.post, found && p.Clock.Since(use.at) < keyLife
}

func (p *Platform) repeat(w http.ResponseWriter, r *faults.Request, account state.Account, id string) {
	post, found := p.Store.Post(Name, id)
	if !found {
		p.fail(w, notFound())
		return
	}
	p.write(w, http.StatusOK, p.status(r.Request, account, post))
}

// refusePost responds with the error for a post that the store did not accept.
func (p *Platform) refusePost(w http.ResponseWriter, account state.Account, err error) {
	if quota, full := errors.AsType[*state.QuotaError](err); full {
		p.limitedUntil(w, quota.Quota, quota.Resets)
		return
	}
	if _, published := errors.AsType[*state.PublishedError](err); published || errors.Is(err, state.ErrNoContainer) {
		p.fail(w, noMedia("the files"))
		return
	}
	p.fail(w, p.broken("a post could not be kept", account.ID, err))
}

// noMedia returns the error for files that do not exist or already belong to a post
// (app/services/post_status_service.rb). Older versions ignore such files.
func noMedia(ids string) *problem {
	return notValid("Media " + ids + " not found or already attached to another post")
}

// readStatusParams reads a post from a request. It returns a problem if Mastodon would not create it.
func (p *Platform) readStatusParams(r *faults.Request, account state.Account) (state.Draft, *problem) {
	q, ok := readParams(r)
	if !ok {
		return state.Draft{}, badBody()
	}
	draft := state.Draft{Text: strings.TrimSpace(q.text("status")), NewID: newID, InReplyTo: q.text("in_reply_to_id")}
	kept := detail{
		Spoiler: strings.TrimSpace(q.text("spoiler_text")), Visibility: q.text("visibility"), Language: q.text("language"), Sensitive: q.flag("sensitive"),
	}
	ids := q.list("media_ids")
	if with := p.checked(q); with != nil {
		return draft, with
	}
	if with := p.attach(&draft, account, ids); with != nil {
		return draft, with
	}
	kept.Sensitive = kept.Sensitive || kept.Spoiler != ""
	if draft.Text == "" {
		draft.Text, kept.Spoiler = kept.Spoiler, ""
	}
	if with := p.checkStatus(&draft, &kept, len(ids) > 0); with != nil {
		return draft, with
	}
	if with := p.answerTo(&draft); with != nil {
		return draft, with
	}
	content, err := json.Marshal(kept)
	draft.Detail, draft.Privacy = content, kept.Visibility
	return draft, p.broken("a post could not be encoded", "", err)
}

// languages contains some ISO 639 codes. Mastodon ignores a code that it does not know.
const languages = " ar bg ca cs da de el en eo es et fa fi fr ga gl he hi hr hu id is it ja ko lt lv nb nl nn no pl pt ro ru sk sl sr sv th tr uk vi zh "

// checkStatus validates a post, and sets its default visibility.
func (p *Platform) checkStatus(draft *state.Draft, kept *detail, media bool) *problem {
	if kept.Visibility == "" {
		kept.Visibility = "public"
	}
	switch {
	case draft.Text == "" && !media:
		return notValid("Text can't be blank")
	case length(kept.Spoiler, draft.Text) > maxCharacters:
		return notValid(fmt.Sprintf("Text character limit of %d exceeded", maxCharacters))
	case !slices.Contains([]string{"public", "unlisted", "private", "direct"}, kept.Visibility):
		return notValid("Visibility is not included in the list")
	case kept.Language != "" && !strings.Contains(languages, " "+kept.Language+" "):
		if !p.Lenient {
			return &problem{http.StatusBadRequest, "Mastodon ignores the language " + kept.Language}
		}
		kept.Language = ""
	}
	return nil
}

// attach adds files to a post.
func (p *Platform) attach(draft *state.Draft, account state.Account, ids []string) *problem {
	if len(ids) > maxMedia {
		return notValid("Cannot attach more than 4 files")
	}
	videos := false
	for i, id := range ids {
		c, found := p.unattached(account, id)
		if !found || slices.Contains(ids[:i], id) {
			return noMedia(id)
		}
		videos = videos || mediaOf(c).Kind == kindVideo
		if p.busy(c) || c.Failure != "" {
			return notValid("Cannot attach files that have not finished processing. Try again in a moment!")
		}
		draft.Media = append(draft.Media, c.Media[0].Described(c.AltText))
	}
	if videos && len(ids) > 1 {
		return notValid("Cannot attach a video to a post that already contains images")
	}
	draft.Parts = ids
	return nil
}

// answerTo finds the post that a draft replies to.
func (p *Platform) answerTo(draft *state.Draft) *problem {
	if draft.InReplyTo == "" {
		return nil
	}
	parent, found := p.Store.Post(Name, draft.InReplyTo)
	if !found {
		return &problem{http.StatusNotFound, "The post you are trying to reply to does not appear to exist."}
	}
	draft.Root = parent.Root
	return nil
}
