// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

type state string

const (
	stateUploading   state = "PROCESSING_UPLOAD"
	stateDownloading state = "PROCESSING_DOWNLOAD"
	stateInInbox     state = "SEND_TO_USER_INBOX"
	stateComplete    state = "PUBLISH_COMPLETE"
	stateFailed      state = "FAILED"
)

const (
	msgNoState    = "TikTok did not report the state of the post"
	msgProcessing = "TikTok has accepted the post and is processing it"
	msgModerated  = "TikTok has published the post, but has not returned its id yet"
)

const (
	// firstPause and longestPause bound the pauses between status calls. TikTok allows 30 per minute.
	firstPause   = 300 * time.Millisecond
	longestPause = 4 * time.Second
	// askTimes is the maximum number of status calls while TikTok processes a post: their pauses take about nine
	// seconds. idTimes is the maximum while waiting for a finished post's public id: about two seconds.
	askTimes = 6
	idTimes  = 4
)

// moderationFor is how long after job.SearchFrom Herald waits for the public id of a finished post. TikTok returns the
// id when moderation ends: usually within a minute, sometimes after hours (Content Posting API, "Get Post Status"). The
// value is ten minutes plus one, because SearchFrom may precede the call by a minute.
const moderationFor = 11 * time.Minute

type status struct {
	state  state
	reason string
	// uploaded is the number of bytes received; -1 if unknown.
	uploaded int64
	// postID is the post's public id; empty if only the owner can see the post, or if it has no id yet.
	postID string
}

// final reports whether TikTok has finished, even if the post may still lack its public id.
func (s status) final() bool {
	return s.state == stateComplete || s.state == stateInInbox || s.state == stateFailed
}

// partial reports whether TikTok is still waiting for bytes of a file of the given size, which proves that there is no
// post.
func (s status) partial(size int64) bool {
	return s.state == stateUploading && s.uploaded >= 0 && s.uploaded < size
}

// whole reports whether TikTok has the whole post and is processing it.
func (s status) whole(content *platforms.Content) bool {
	if !isVideo(content) {
		return s.state == stateDownloading
	}
	return s.state == stateUploading && s.uploaded >= content.Media[0].Size
}

// silent reports whether TikTok is waiting for a file, or processing it, without returning the number of received
// bytes. TikTok may omit the number while it is 0, but does not document that: the only example in "Get Post Status"
// contains uploaded_bytes. Such a status does not prove that there is no post, but the file can be sent from its start
// under the same ticket.
func (s status) silent() bool { return s.state == stateUploading && s.uploaded < 0 }

func (p *Platform) fetchStatus(ctx context.Context, token platforms.Token, id string) (status, *refusal) {
	answer, bad := callAPI[struct {
		Status   jsondoc.Text `json:"status"`
		Reason   jsondoc.Text `json:"fail_reason"`
		Uploaded jsondoc.Text `json:"uploaded_bytes"`
		// The ids of a public post. TikTok misspells the field name and may correct it.
		PublicalyIDs []jsondoc.Text `json:"publicaly_available_post_id"`
		PubliclyIDs  []jsondoc.Text `json:"publicly_available_post_id"`
	}](ctx, p, "status", "/v2/post/publish/status/fetch/", token, map[string]string{"publish_id": id})
	if bad != nil {
		return status{}, bad
	}
	out := status{state: state(answer.Status), reason: answer.Reason.String(), uploaded: -1}
	for _, ids := range [][]jsondoc.Text{answer.PubliclyIDs, answer.PublicalyIDs} {
		if len(ids) > 0 && validPostID(ids[0].String()) {
			out.postID = ids[0].String()
		}
	}
	if n, err := strconv.ParseInt(answer.Uploaded.String(), 10, 64); err == nil && n >= 0 {
		out.uploaded = n
	}
	switch out.state {
	case stateUploading, stateDownloading, stateInInbox, stateComplete, stateFailed:
		return out, nil
	default:
		return status{}, &refusal{Error: platforms.Errorf(platforms.ClassUnknown, msgNoState)}
	}
}

// pollStatus polls a ticket's status until TikTok has finished or the maximum number of calls is reached. It waits only
// briefly for a finished post's public id, because Lookup has more time for that.
func (p *Platform) pollStatus(ctx context.Context, job platforms.Job, id string) (status, *refusal) {
	var known status
	for left, pause := askTimes, firstPause; ; pause = min(2*pause, longestPause) {
		found, bad := p.fetchStatus(ctx, job.Account.Token, id)
		if bad == nil && found.final() && !known.final() {
			left, pause = idTimes, firstPause
		}
		if bad == nil {
			known = found
		}
		passes := bad == nil || bad.Class == platforms.ClassTransient || bad.Class == platforms.ClassUnknown
		left--
		if known.settled(&job.Content) || !passes || left <= 0 || client.Wait(ctx, p.Clock, pause) != nil {
			if known.final() {
				return known, nil
			}
			return known, bad
		}
	}
}

// moderating reports whether a lookup should keep waiting for a post's public id.
func (p *Platform) moderating(job platforms.Job, found status) bool {
	return found.final() && !found.settled(&job.Content) && p.Clock.Since(job.SearchFrom) < moderationFor
}

// settled reports whether the status is complete: the post has its public id, or will never get one.
func (s status) settled(content *platforms.Content) bool {
	return s.final() && (s.state != stateComplete || s.postID != "" || !isPublic(content))
}

// publishedPost returns the id and URL of a ticket's post. A post without a public id gets the ticket's id and its
// account's URL. A draft in the inbox has no URL.
func (p *Platform) publishedPost(job platforms.Job, id string, found status) (externalID, externalURL string) {
	switch {
	case found.state == stateInInbox:
		return id, ""
	case found.postID == "":
		return id, p.profileURL(job.Account)
	default:
		return found.postID, p.postURL(job, found.postID)
	}
}

func (p *Platform) profileURL(account platforms.Account) string {
	if account.Username == "" {
		return ""
	}
	return p.WebURL + "/@" + url.PathEscape(account.Username)
}

func (p *Platform) postURL(job platforms.Job, id string) string {
	kind := "/photo/"
	if job.Content.Category == v1alpha1.CategoryVideo {
		kind = "/video/"
	}
	profile := p.profileURL(job.Account)
	if profile == "" {
		return ""
	}
	return profile + kind + url.PathEscape(id)
}

// validTicket reports whether a string can be a publish id, such as v_pub_file~v2-1.123.
func validTicket(id string) bool { return text.Consists(id, 1, 128, text.Letters+text.Digits+"~._-") }

func validPostID(id string) bool { return text.Consists(id, 1, 32, text.Digits) }
