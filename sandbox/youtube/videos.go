// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// failures are the reasons that count as failed processing; all others are rejections.
var failures = []string{"codec", "conversion", "emptyFile", "invalidFile", "tooSmall", "uploadAborted"}

// maxIDs is the maximum number of videos in one request.
const maxIDs = 50

// videos handles GET /youtube/v3/videos.
func (p *Platform) videos(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeRead, scopeAll, scopeSSL)
	query := r.URL.Query()
	if refused == nil {
		refused = checkParameters(query, []string{"part", "id"}, videoParts)
	}
	ids := strings.Split(query.Get("id"), ",")
	if refused == nil && (query.Get("id") == "" || len(ids) > maxIDs) {
		refused = badParameter("missingRequiredParameter", "parameters.", "No filter selected. Expected: id, with at most 50 ids")
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	items := []map[string]any{}
	for _, id := range ids {
		post, ok := p.Store.Post(Name, id)
		if ok && (post.AccountID == account.ID || post.Privacy != "private") {
			items = append(items, p.video(account, post, r, requestedParts(query)))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"kind": "youtube#videoListResponse", "etag": etag("videos", account), "items": items,
		"pageInfo": map[string]int{"totalResults": len(items), "resultsPerPage": len(items)},
	})
}

// deleteVideo handles DELETE /youtube/v3/videos (Google's reference "Videos: delete"). The upload scope alone is not
// enough.
func (p *Platform) deleteVideo(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeAll, scopeSSL)
	query := r.URL.Query()
	if refused == nil {
		refused = checkParameters(query, []string{"id"}, nil)
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	post, found := p.Store.Post(Name, query.Get("id"))
	if found && post.AccountID != account.ID {
		fail(w, refuse(http.StatusForbidden, "PERMISSION_DENIED", "youtube.video", "forbidden",
			"The video that you are trying to delete cannot be deleted. The request might not be properly authorized."))
		return
	}
	err := p.Store.Delete(account.Key, query.Get("id"))
	switch {
	case errors.Is(err, state.ErrNoPost):
		fail(w, refuse(http.StatusNotFound, "NOT_FOUND", "youtube.video", "videoNotFound",
			"The video that you are trying to delete cannot be found. Check the value of the request's id parameter."))
	case err != nil:
		fail(w, p.broken("delete a video", err))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// video renders the requested parts of a video, as seen by the account to.
func (p *Platform) video(to state.Account, post state.Post, r *faults.Request, asked []string) map[string]any {
	kept := detailOf(post.Detail)
	channel, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	parts := map[string]any{
		"snippet": map[string]any{
			"publishedAt": post.CreatedAt().Format(time.RFC3339), "channelId": channel.ID, "channelTitle": channel.DisplayName,
			"title": post.Title, "description": post.Text, "categoryId": "22", "liveBroadcastContent": "none",
			"localized": map[string]string{"title": post.Title, "description": post.Text}, "thumbnails": p.thumbnails(kept, r),
		},
		"status":         p.statusOf(post, kept),
		"contentDetails": map[string]any{"duration": "PT" + strconv.FormatInt(kept.Seconds, 10) + "S", "definition": "hd", "caption": "false"},
	}
	if to.ID == post.AccountID {
		parts["processingDetails"] = map[string]string{"processingStatus": p.processingOf(kept)}
	}
	return resource("youtube#video", post.ID, "video-"+post.ID, asked, parts)
}

func (p *Platform) statusOf(post state.Post, kept detail) map[string]any {
	out := map[string]any{
		"uploadStatus": "uploaded", "privacyStatus": post.Privacy, "license": "youtube", "embeddable": true,
		"publicStatsViewable": true, "madeForKids": false,
	}
	switch p.processingOf(kept) {
	case succeeded:
		out["uploadStatus"] = "processed"
	case "failed":
		out["uploadStatus"], out["failureReason"] = "failed", kept.Failure
	case "terminated":
		out["uploadStatus"], out["rejectionReason"] = "rejected", kept.Failure
	}
	return out
}

// succeeded is the processingStatus of a video that can be watched.
const succeeded = "succeeded"

func (p *Platform) processingOf(kept detail) string {
	switch {
	case p.Clock.Now().Before(kept.ReadyAt):
		return "processing"
	case kept.Failure == "":
		return succeeded
	case slices.Contains(failures, kept.Failure):
		return "failed"
	default:
		return "terminated"
	}
}
