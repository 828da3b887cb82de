// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"encoding/json"
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// postStatus is the status of a publish id.
type postStatus struct {
	Status     string `json:"status"`
	FailReason string `json:"fail_reason,omitempty"`
	// PublicIDs is spelled as TikTok spells it.
	PublicIDs       []json.Number `json:"publicaly_available_post_id,omitempty"`
	UploadedBytes   *int64        `json:"uploaded_bytes,omitempty"`
	DownloadedBytes *int64        `json:"downloaded_bytes,omitempty"`
}

// named returns the container of the publish id in a request: {"publish_id": …}.
func (p *Platform) named(r *faults.Request, account state.Account) (state.Container, *refusal) {
	var body struct {
		PublishID string `json:"publish_id"`
	}
	if bad := p.readJSON(r, &body); bad != nil {
		return state.Container{}, bad
	}
	issued, ok := p.Store.Container(Name, body.PublishID)
	switch {
	case body.PublishID == "":
		return issued, invalid("publish_id is required.")
	case !ok:
		return issued, &refusal{http.StatusBadRequest, "invalid_publish_id", "The publish_id does not exist."}
	case issued.AccountID != account.ID:
		return issued, &refusal{
			http.StatusBadRequest, "token_not_authorized_for_specified_publish_id", "The access token does not have authority over this publish_id.",
		}
	default:
		return issued, nil
	}
}

// status handles POST /v2/post/publish/status/fetch/.
func (p *Platform) status(w http.ResponseWriter, r *faults.Request) {
	account, _, ok := p.authorized(w, r, scopePublish, scopeUpload)
	if !ok {
		return
	}
	issued, bad := p.named(r, account)
	if bad != nil {
		p.answer(w, nil, bad)
		return
	}
	// If another request holds the upload's lock, respond with the current state.
	if lock := p.uploads.Of(issued.ID); lock.TryLock() {
		err := p.settle(issued.ID)
		lock.Unlock()
		if err != nil {
			p.answer(w, nil, p.broken("keep a post", err))
			return
		}
		issued, _ = p.Store.Container(Name, issued.ID)
	}
	p.succeed(w, p.statusOf(account, issued))
}

func (p *Platform) statusOf(account state.Account, issued state.Container) postStatus {
	t, now := ticketOf(issued), p.Clock.Now()
	post, posted := p.Store.Post(Name, issued.PostID)
	var out postStatus
	bytes := t.Size
	if t.Source == fromFile {
		out.Status = "PROCESSING_UPLOAD"
		if size, open := p.Blobs.Size(issued.ID); open {
			bytes = size
		}
		out.UploadedBytes = &bytes
	} else {
		out.Status = "PROCESSING_DOWNLOAD"
		for _, file := range post.Media {
			bytes += file.Bytes
		}
		out.DownloadedBytes = &bytes
	}
	switch {
	case t.Done && !now.Before(issued.ReadyAt):
		out.Status, out.FailReason = "FAILED", issued.Failure
	case !posted || now.Before(detailOf(post).ReadyAt):
	case post.Draft:
		out.Status = "SEND_TO_USER_INBOX"
	default:
		out.Status = "PUBLISH_COMPLETE"
		if p.public(account, &post) && !now.Before(listedAt(account, post)) {
			out.PublicIDs = []json.Number{json.Number(post.ID)}
		}
	}
	return out
}

// public reports whether everyone can see a post.
func (p *Platform) public(account state.Account, post *state.Post) bool {
	return !post.Draft && post.Privacy == everyone && !account.Settings.Private
}
