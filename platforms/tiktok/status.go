// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// state is what TikTok says of a ticket.
type state string

// The states of a ticket.
const (
	stateUploading   state = "PROCESSING_UPLOAD"
	stateDownloading state = "PROCESSING_DOWNLOAD"
	stateInInbox     state = "SEND_TO_USER_INBOX"
	stateComplete    state = "PUBLISH_COMPLETE"
	stateFailed      state = "FAILED"
)

const (
	msgNoState    = "TikTok did not say how far it is with the post"
	msgProcessing = "TikTok has taken the post and is processing it"
	msgModerated  = "TikTok has published the post and has not told its id yet"
)

const (
	// firstPause and longestPause are how long to wait between two questions
	// about a post. TikTok answers 30 a minute.
	firstPause   = 300 * time.Millisecond
	longestPause = 4 * time.Second
	// askTimes is how often one call asks about a post that TikTok processes,
	// which is within ten seconds; idTimes how often about the public id of one
	// that is complete, within two.
	askTimes = 6
	idTimes  = 4
)

// moderationFor is for how long after job.SearchFrom a post that is complete is
// asked for its public id, which TikTok tells when its moderation is done: within
// a minute usually, after hours at times (Content Posting API, "Get Post Status").
// These are ten minutes, and one by which SearchFrom may precede the call.
const moderationFor = 11 * time.Minute

// status is what became of a ticket.
type status struct {
	state  state
	reason string
	// uploaded is how many bytes of the file have arrived; -1 if TikTok does
	// not say.
	uploaded int64
	// postID is the public id of the post; empty for one that only its owner
	// can see, or that has none yet.
	postID string
}

// final reports that TikTok is done with it, but perhaps for a public id.
func (s status) final() bool {
	return s.state == stateComplete || s.state == stateInInbox || s.state == stateFailed
}

// partial reports that TikTok still waits for bytes of a file of that size, which
// proves that there is no post.
func (s status) partial(size int64) bool {
	return s.state == stateUploading && s.uploaded >= 0 && s.uploaded < size
}

// whole reports that TikTok has all of a post and works on it.
func (s status) whole(content *platforms.Content) bool {
	if !isVideo(content) {
		return s.state == stateDownloading
	}
	return s.state == stateUploading && s.uploaded >= content.Media[0].Size
}

// silent reports that TikTok waits for a file, or works on it, without saying how
// much of it has arrived. Its documentation has no example of that ("Get Post
// Status", whose only one has uploaded_bytes): it may leave the number out while it
// is 0, and says nowhere that it does. So it is no proof that there is no post, and
// reason enough to send the file from its beginning under the same ticket.
func (s status) silent() bool { return s.state == stateUploading && s.uploaded < 0 }

// fetchStatus asks what became of a ticket.
func (p *Platform) fetchStatus(ctx context.Context, token platforms.Token, id string) (status, *refusal) {
	said, bad := callAPI[struct {
		Status   jsondoc.Text `json:"status"`
		Reason   jsondoc.Text `json:"fail_reason"`
		Uploaded jsondoc.Text `json:"uploaded_bytes"`
		// The ids of a post that everyone can see. TikTok misspells the name and
		// may come to spell it rightly.
		PublicalyIDs []jsondoc.Text `json:"publicaly_available_post_id"`
		PubliclyIDs  []jsondoc.Text `json:"publicly_available_post_id"`
	}](ctx, p, "status", "/v2/post/publish/status/fetch/", token, map[string]string{"publish_id": id})
	if bad != nil {
		return status{}, bad
	}
	out := status{state: state(said.Status), reason: said.Reason.String(), uploaded: -1}
	for _, ids := range [][]jsondoc.Text{said.PubliclyIDs, said.PublicalyIDs} {
		if len(ids) > 0 && validPostID(ids[0].String()) {
			out.postID = ids[0].String()
		}
	}
	if n, err := strconv.ParseInt(said.Uploaded.String(), 10, 64); err == nil && n >= 0 {
		out.uploaded = n
	}
	switch out.state {
	case stateUploading, stateDownloading, stateInInbox, stateComplete, stateFailed:
		return out, nil
	default:
		return status{}, &refusal{Error: platforms.Errorf(platforms.ClassUnknown, msgNoState)}
	}
}

// pollStatus asks what became of a ticket until TikTok is done with it, or has been
// asked often enough. What is complete for everyone to see is waited for until
// it has an id, but only for a moment: Lookup has more time.
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
		if known.settled(&job.Content) || !passes || left <= 0 || client.Wait(ctx, p.clock, pause) != nil {
			if known.final() {
				return known, nil
			}
			return known, bad
		}
	}
}

// moderating reports that a look is to wait still for the public id of a post
// that has none yet.
func (p *Platform) moderating(job platforms.Job, found status) bool {
	return found.final() && !found.settled(&job.Content) && p.clock.Since(job.SearchFrom) < moderationFor
}

// settled reports that nothing more is to be learnt about a post: it has its
// public id, or will have none.
func (s status) settled(content *platforms.Content) bool {
	return s.final() && (s.state != stateComplete || s.postID != "" || !isPublic(content))
}

// publishedPost describes the post that a ticket has become. One that is not public,
// or not for long after, has no id but the ticket's, and no address but its account's; what
// lies in an inbox has none.
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

// profileURL is where people see an account; "" if its name is not known.
func (p *Platform) profileURL(account platforms.Account) string {
	if account.Username == "" {
		return ""
	}
	return p.webURL + "/@" + url.PathEscape(account.Username)
}

// postURL is where people see a public post.
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

var (
	ticketForm = regexp.MustCompile(`^[A-Za-z0-9~._-]{1,128}$`)
	postIDForm = regexp.MustCompile(`^[0-9]{1,32}$`)
)

// validTicket reports whether this can be a publish id, such as
// v_pub_file~v2-1.123.
func validTicket(id string) bool { return ticketForm.MatchString(id) }

// validPostID reports whether this can be the id of a post.
func validPostID(id string) bool { return postIDForm.MatchString(id) }
