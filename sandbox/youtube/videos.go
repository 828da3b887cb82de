// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// videoParts are the parts of a video that may be asked for. Those that have nothing to say here are left out of the answer.
var videoParts = []string{
	"contentDetails", "fileDetails", "id", "liveStreamingDetails", "localizations", "paidProductPlacementDetails", "player",
	"processingDetails", "recordingDetails", "snippet", "statistics", "status", "suggestions", "topicDetails",
}

// failures are the reasons for which YouTube cannot work on a video; any other one is a rejection.
var failures = []string{"codec", "conversion", "emptyFile", "invalidFile", "tooSmall", "uploadAborted"}

// maxIDs is how many videos may be asked for at once.
const maxIDs = 50

// videos is GET /youtube/v3/videos.
func (p *Platform) videos(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeRead, scopeAll)
	if refused == nil {
		refused = p.spend(account, listCost)
	}
	query := r.URL.Query()
	if refused == nil {
		refused = checkParameters(query, []string{"part", "id", "hl", "maxWidth", "maxHeight"}, videoParts)
	}
	ids := strings.Split(query.Get("id"), ",")
	if refused == nil && (query.Get("id") == "" || len(ids) > maxIDs) {
		with := badParameter("missingRequiredParameter", "parameters.", "No filter selected. Expected: id, with at most 50 ids")
		refused = &with
	}
	if refused != nil {
		fail(w, *refused)
		return
	}
	items := []map[string]any{}
	for _, id := range ids {
		post, ok := p.Store.Post(Name, id)
		if ok && (post.AccountID == account.ID || p.privacy(post) != "private") {
			items = append(items, p.video(account, post, r, strings.Split(query.Get("part"), ",")))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"kind": "youtube#videoListResponse", "etag": etag("videos", account), "items": items,
		"pageInfo": map[string]int{"totalResults": len(items), "resultsPerPage": len(items)},
	})
}

// privacy is who may see a video now: one with a time of its own becomes public then.
func (p *Platform) privacy(post state.Post) string {
	at, err := time.Parse(time.RFC3339, detailOf(post.Detail).Resource.Status.PublishAt)
	if err == nil && !p.Clock.Now().Before(at) {
		return "public"
	}
	return post.Privacy
}

// video shows these parts of a video to an account.
func (p *Platform) video(to state.Account, post state.Post, r *faults.Request, asked []string) map[string]any {
	out := map[string]any{"kind": "youtube#video", "etag": "video-" + post.ID, "id": post.ID}
	kept := detailOf(post.Detail)
	parts := map[string]any{
		"snippet": p.snippetOf(post, kept, r), "status": p.statusOf(post, kept),
		"contentDetails": map[string]any{"duration": "PT" + strconv.FormatInt(kept.Seconds, 10) + "S", "definition": "hd", "caption": "false"},
		"statistics":     map[string]string{"viewCount": "0", "likeCount": "0", "favoriteCount": "0", "commentCount": "0"},
	}
	if to.ID == post.AccountID {
		parts["processingDetails"] = map[string]string{"processingStatus": p.processingOf(kept)}
	}
	if kept.Resource.Recording != nil {
		parts["recordingDetails"] = kept.Resource.Recording
	}
	if kept.Resource.ProductPlacement != nil {
		parts["paidProductPlacementDetails"] = kept.Resource.ProductPlacement
	}
	if kept.Resource.Localizations != nil {
		parts["localizations"] = kept.Resource.Localizations
	}
	for name, part := range parts {
		if slices.Contains(asked, name) {
			out[name] = part
		}
	}
	return out
}

func (p *Platform) snippetOf(post state.Post, kept detail, r *faults.Request) map[string]any {
	channel, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	given := *kept.Resource.Snippet
	out := map[string]any{
		"publishedAt": post.CreatedAt().Format(time.RFC3339), "channelId": channel.ID, "channelTitle": channel.DisplayName,
		"title": given.Title, "description": given.Description, "categoryId": given.CategoryID, "liveBroadcastContent": "none",
		"localized": map[string]string{"title": given.Title, "description": given.Description}, "thumbnails": p.thumbnails(kept, r),
	}
	if given.CategoryID == "" {
		out["categoryId"] = "22"
	}
	if len(given.Tags) > 0 {
		out["tags"] = given.Tags
	}
	if given.DefaultLanguage != "" {
		out["defaultLanguage"] = given.DefaultLanguage
	}
	if given.DefaultAudioLanguage != "" {
		out["defaultAudioLanguage"] = given.DefaultAudioLanguage
	}
	return out
}

func (p *Platform) statusOf(post state.Post, kept detail) map[string]any {
	given := *kept.Resource.Status
	on := func(flag *bool, unsaid bool) bool {
		if flag == nil {
			return unsaid
		}
		return *flag
	}
	out := map[string]any{
		"uploadStatus": "uploaded", "privacyStatus": p.privacy(post), "license": given.License, "embeddable": on(given.Embeddable, true),
		"publicStatsViewable": on(given.StatsViewable, true), "madeForKids": on(given.MadeForKids, false),
	}
	if given.MadeForKids != nil {
		out["selfDeclaredMadeForKids"] = *given.MadeForKids
	}
	if given.SyntheticMedia != nil {
		out["containsSyntheticMedia"] = *given.SyntheticMedia
	}
	if given.PublishAt != "" && p.privacy(post) == "private" {
		out["publishAt"] = given.PublishAt
	}
	switch {
	case p.Clock.Now().Before(kept.ReadyAt):
	case kept.Failure == "":
		out["uploadStatus"] = "processed"
	case slices.Contains(failures, kept.Failure):
		out["uploadStatus"], out["failureReason"] = "failed", kept.Failure
	default:
		out["uploadStatus"], out["rejectionReason"] = "rejected", kept.Failure
	}
	return out
}

func (p *Platform) processingOf(kept detail) string {
	switch {
	case p.Clock.Now().Before(kept.ReadyAt):
		return "processing"
	case kept.Failure == "":
		return "succeeded"
	case slices.Contains(failures, kept.Failure):
		return "failed"
	default:
		return "terminated"
	}
}
