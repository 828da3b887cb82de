// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	defaultItems = 5
	maxItems     = 50
)

// playlistItems handles GET /youtube/v3/playlistItems, for the playlist of the token's own channel, newest first.
func (p *Platform) playlistItems(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeRead, scopeAll, scopeSSL)
	query := r.URL.Query()
	if refused == nil {
		refused = checkParameters(query, []string{"part", "playlistId", "maxResults", "pageToken"}, itemParts)
	}
	within := state.Range{Lag: r.ListLag, Limit: defaultItems}
	if refused == nil {
		refused = readPage(query.Get("playlistId"), query.Get("maxResults"), query.Get("pageToken"), &within)
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	if query.Get("playlistId") != uploads(account.ID) {
		fail(w, refuse(http.StatusNotFound, "NOT_FOUND", "youtube.playlistItem", "playlistNotFound",
			"The playlist identified with the request's playlistId parameter cannot be found."))
		return
	}
	posts, more, err := p.Store.Timeline(account.Key, within)
	if err != nil {
		fail(w, p.broken("list videos", err))
		return
	}
	items := []map[string]any{}
	for _, post := range posts {
		items = append(items, p.item(post, query.Get("playlistId"), r, requestedParts(query)))
	}
	out := map[string]any{
		"kind": "youtube#playlistItemListResponse", "etag": etag("items", account), "items": items,
		"pageInfo": map[string]int{"totalResults": p.Store.PostCount(account.Key), "resultsPerPage": within.Limit},
	}
	if more {
		out["nextPageToken"] = posts[len(posts)-1].Stamp.String()
	}
	writeJSON(w, http.StatusOK, out)
}

// readPage reads the requested part of the playlist.
func readPage(playlist, most, token string, into *state.Range) *problem {
	if playlist == "" {
		return badParameter("missingRequiredParameter", "parameters.", "No filter selected. Expected: playlistId")
	}
	if most != "" {
		n, err := strconv.Atoi(most)
		if err != nil || n < 0 || n > maxItems {
			return badParameter("invalidParameter", "maxResults", "Invalid value for maxResults: it must be from 0 to 50.")
		}
		into.Limit = cmp.Or(n, defaultItems)
	}
	if token == "" {
		return nil
	}
	var ok bool
	if into.Before, ok = state.ParseStamp(token); !ok {
		return badParameter("invalidPageToken", "pageToken", "The request specifies an invalid page token.")
	}
	return nil
}

func (p *Platform) item(post state.Post, playlist string, r *faults.Request, asked []string) map[string]any {
	channel, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	at := post.CreatedAt().Format(time.RFC3339)
	return resource("youtube#playlistItem", playlist+"."+post.ID, "item-"+post.ID, asked, map[string]any{
		"snippet": map[string]any{
			"publishedAt": at, "channelId": channel.ID, "channelTitle": channel.DisplayName, "title": post.Title,
			"description": post.Text, "playlistId": playlist, "thumbnails": p.thumbnails(detailOf(post.Detail), r),
			"resourceId": map[string]string{"kind": "youtube#video", "videoId": post.ID},
		},
		"contentDetails": map[string]string{"videoId": post.ID, "videoPublishedAt": at},
		"status":         map[string]string{"privacyStatus": post.Privacy},
	})
}
