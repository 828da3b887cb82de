// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// The simulated parts.
var (
	channelParts = []string{"contentDetails", "id", "snippet", "statistics", "status"}
	itemParts    = []string{"contentDetails", "id", "snippet", "status"}
	videoParts   = []string{"contentDetails", "id", "processingDetails", "snippet", "status"}
)

// common are the parameters that every method accepts.
var common = []string{
	"$.xgafv", "access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "upload_protocol", "userIp",
}

// channels handles GET /youtube/v3/channels for the token's own channel.
func (p *Platform) channels(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeRead, scopeAll, scopeSSL)
	query := r.URL.Query()
	if refused == nil {
		refused = checkParameters(query, []string{"part", "mine", "maxResults"}, channelParts)
	}
	if refused == nil && query.Get("mine") != "true" {
		refused = badParameter("missingRequiredParameter", "parameters.", "No filter selected. Expected: mine=true")
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"kind": "youtube#channelListResponse", "etag": etag("list", account),
		"pageInfo": map[string]int{"totalResults": 1, "resultsPerPage": 5},
		"items":    []any{p.channel(account, r, requestedParts(query))},
	})
}

// requestedParts returns the requested parts.
func requestedParts(query url.Values) []string { return strings.Split(query.Get("part"), ",") }

// checkParameters rejects unknown parameters and parts. Parts may be separated by commas, or the parameter may be
// repeated.
func checkParameters(query url.Values, known, parts []string) *problem {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) && !slices.Contains(common, name) || len(query[name]) > 1 && name != "part" {
			return badParameter("unexpectedParameter", name, fmt.Sprintf("Invalid JSON payload received. Unknown name %q: Cannot bind query parameter.", name))
		}
	}
	if parts == nil {
		return nil
	}
	query.Set("part", strings.Join(query["part"], ","))
	if query.Get("part") == "" {
		return badParameter("missingRequiredParameter", "part", "Required parameter: part")
	}
	for _, name := range requestedParts(query) {
		if !slices.Contains(parts, name) {
			return badParameter("unknownPart", "part", name)
		}
	}
	return nil
}

// channel renders the requested parts of a channel.
func (p *Platform) channel(a state.Account, r *faults.Request, asked []string) map[string]any {
	thumbnails := map[string]any{}
	for name, side := range map[string]int{"default": 88, "medium": 240, "high": 800} {
		thumbnails[name] = map[string]any{"url": p.Avatar(r.Request, a), "width": side, "height": side}
	}
	return resource("youtube#channel", a.ID, etag("channel", a), asked, map[string]any{
		"snippet": map[string]any{
			"title": a.DisplayName, "description": "", "customUrl": "@" + strings.ToLower(a.Username),
			"publishedAt": a.CreatedAt.Format("2006-01-02T15:04:05.999999Z"), "thumbnails": thumbnails,
			"localized": map[string]string{"title": a.DisplayName, "description": ""},
		},
		"contentDetails": map[string]any{"relatedPlaylists": map[string]string{"likes": "", "uploads": uploads(a.ID)}},
		"statistics": map[string]any{
			"viewCount": "0", "subscriberCount": "0", "hiddenSubscriberCount": false, "videoCount": strconv.Itoa(p.Store.PostCount(a.Key)),
		},
		"status": map[string]any{"privacyStatus": "public", "isLinked": true, "longUploadsStatus": "allowed"},
	})
}

// resource renders the requested parts of a resource.
func resource(kind, id, tag string, asked []string, parts map[string]any) map[string]any {
	out := map[string]any{"kind": kind, "etag": tag, "id": id}
	for name, part := range parts {
		if slices.Contains(asked, name) {
			out[name] = part
		}
	}
	return out
}

// uploads returns the id of the playlist with a channel's videos: the channel's id with another prefix.
func uploads(channel string) string { return "UU" + strings.TrimPrefix(channel, "UC") }

// etag returns a resource's ETag, which never changes in the sandbox.
func etag(kind string, a state.Account) string {
	return strings.Join([]string{kind, a.ID, strconv.FormatInt(a.CreatedAt.UnixMilli(), 36)}, "-")
}
