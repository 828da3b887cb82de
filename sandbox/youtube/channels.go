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

// parts are the parts of a channel that may be asked for. Those that have nothing to say here are left out of the answer.
var parts = []string{
	"auditDetails", "brandingSettings", "contentDetails", "contentOwnerDetails", "id", "localizations", "snippet", "statistics",
	"status", "topicDetails",
}

// parameters are those of channels.list.
var parameters = []string{"part", "mine", "id", "forHandle", "maxResults", "pageToken", "hl"}

// common are the parameters of every method.
var common = []string{"key", "alt", "prettyPrint", "quotaUser"}

// channels is GET /youtube/v3/channels.
func (p *Platform) channels(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeRead, scopeAll)
	if refused != nil {
		fail(w, *refused)
		return
	}
	if refused := p.spend(account, listCost); refused != nil {
		fail(w, *refused)
		return
	}
	query := r.URL.Query()
	if refused := checkQuery(query); refused != nil {
		fail(w, *refused)
		return
	}
	items := []map[string]any{}
	for _, channel := range p.filter(query, account) {
		items = append(items, p.channel(channel, r, strings.Split(query.Get("part"), ",")))
	}
	out := map[string]any{
		"kind": "youtube#channelListResponse", "etag": etag("list", account),
		"pageInfo": map[string]int{"totalResults": len(items), "resultsPerPage": 5},
	}
	if len(items) > 0 {
		out["items"] = items
	}
	writeJSON(w, http.StatusOK, out)
}

// checkParameters refuses parameters that are not known here, and parts that are not among these. Several parts may also come
// one by one.
func checkParameters(query url.Values, known, parts []string) *problem {
	var with problem
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) && !slices.Contains(common, name) || len(query[name]) > 1 && name != "part" {
			with = badParameter("unexpectedParameter", name, fmt.Sprintf("Invalid JSON payload received. Unknown name %q: Cannot bind query parameter.", name))
			return &with
		}
	}
	if len(query["part"]) > 1 {
		query.Set("part", strings.Join(query["part"], ","))
	}
	if query.Get("part") == "" {
		with = badParameter("missingRequiredParameter", "part", "Required parameter: part")
		return &with
	}
	for name := range strings.SplitSeq(query.Get("part"), ",") {
		if !slices.Contains(parts, name) {
			with = badParameter("unknownPart", "part", name)
			return &with
		}
	}
	return nil
}

func checkQuery(query url.Values) *problem {
	if refused := checkParameters(query, parameters, parts); refused != nil {
		return refused
	}
	var with problem
	filters := 0
	for _, name := range []string{"mine", "id", "forHandle"} {
		if query.Get(name) != "" {
			filters++
		}
	}
	mine, err := strconv.ParseBool(query.Get("mine"))
	switch {
	case query.Get("mine") != "" && err != nil:
		with = badParameter("invalidParameter", "mine", "Invalid value for mine: it must be true or false.")
	case filters == 0, filters == 1 && query.Get("mine") != "" && !mine:
		with = badParameter("missingRequiredParameter", "parameters.", "No filter selected. Expected one of: mine, id, forHandle")
	case filters > 1:
		with = badParameter("incompatibleParameters", "parameters.", "Incompatible parameters specified in the request: mine, id, forHandle")
	default:
		return nil
	}
	return &with
}

// filter finds the channels that are asked for.
func (p *Platform) filter(query url.Values, own state.Account) []state.Account {
	var out []state.Account
	if query.Get("mine") != "" {
		out = append(out, own)
	}
	if handle := query.Get("forHandle"); handle != "" {
		if found, ok := p.Store.AccountNamed(Name, strings.TrimPrefix(handle, "@")); ok {
			out = append(out, found)
		}
	}
	for id := range strings.SplitSeq(query.Get("id"), ",") {
		if found, ok := p.Store.Account(state.Key{Platform: Name, ID: id}); ok {
			out = append(out, found)
		}
	}
	return out
}

// channel shows these parts of a channel.
func (p *Platform) channel(a state.Account, r *faults.Request, asked []string) map[string]any {
	out := map[string]any{"kind": "youtube#channel", "etag": etag("channel", a), "id": a.ID}
	picture := p.SiteURL(r.Request) + "/_assets/avatar/" + Name + "/" + a.ID + ".svg"
	thumbnails := map[string]any{}
	for name, side := range map[string]int{"default": 88, "medium": 240, "high": 800} {
		thumbnails[name] = map[string]any{"url": picture, "width": side, "height": side}
	}
	for name, part := range map[string]any{
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
	} {
		if slices.Contains(asked, name) {
			out[name] = part
		}
	}
	return out
}

// uploads is the playlist of a channel's videos: its id with another beginning.
func uploads(channel string) string { return "UU" + strings.TrimPrefix(channel, "UC") }

// etag names a state of a resource. Nobody here asks whether it has changed.
func etag(kind string, a state.Account) string {
	return strings.Join([]string{kind, a.ID, strconv.FormatInt(a.CreatedAt.UnixMilli(), 36)}, "-")
}
