// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// maxVideoSeconds is the maximum duration of a creator's video, TikTok's maximum of 10 minutes.
const maxVideoSeconds = 600

// userFields returns the simulated user fields, by the scope that they need.
func userFields() map[string][]string {
	return map[string][]string{
		scopeBasic:   {"open_id", "avatar_url", "display_name"},
		scopeProfile: {"username"},
	}
}

// userInfo handles GET /v2/user/info/.
func (p *Platform) userInfo(w http.ResponseWriter, r *faults.Request) {
	account, bearer, ok := p.authorized(w, r, scopeBasic)
	if !ok {
		return
	}
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !p.Lenient && name != "fields" || len(query[name]) > 1 {
			p.fail(w, http.StatusBadRequest, "invalid_params", "The parameter "+name+" is not expected, or not more than once.")
			return
		}
	}
	if query.Get("fields") == "" {
		p.fail(w, http.StatusBadRequest, "invalid_params", "Fields is required")
		return
	}
	values := p.user(account, r)
	user := map[string]any{}
	for field := range strings.SplitSeq(query.Get("fields"), ",") {
		scope := scopeOf(field)
		switch {
		case scope == "":
			p.fail(w, http.StatusBadRequest, "invalid_params", "Invalid fields: "+field)
			return
		case !bearer.Allows(scope):
			p.fail(w, http.StatusBadRequest, "scope_permission_missed", "The field "+field+" needs the scope "+scope+".")
			return
		}
		user[field] = values[field]
	}
	p.succeed(w, map[string]any{"user": user})
}

func scopeOf(field string) string {
	for scope, fields := range userFields() {
		if slices.Contains(fields, field) {
			return scope
		}
	}
	return ""
}

func (p *Platform) user(account state.Account, r *faults.Request) map[string]any {
	return map[string]any{
		"open_id": account.ID, "avatar_url": p.Avatar(r.Request, account), "display_name": account.DisplayName, "username": account.Username,
	}
}

// creatorInfo are the posting options of a creator.
type creatorInfo struct {
	AvatarURL       string   `json:"creator_avatar_url"`
	Username        string   `json:"creator_username"`
	Nickname        string   `json:"creator_nickname"`
	PrivacyLevels   []string `json:"privacy_level_options"`
	CommentDisabled bool     `json:"comment_disabled"`
	DuetDisabled    bool     `json:"duet_disabled"`
	StitchDisabled  bool     `json:"stitch_disabled"`
	MaxVideoSeconds int      `json:"max_video_post_duration_sec"`
}

// creatorInfo handles POST /v2/post/publish/creator_info/query/.
func (p *Platform) creatorInfo(w http.ResponseWriter, r *faults.Request) {
	account, _, ok := p.authorized(w, r, scopePublish)
	if !ok {
		return
	}
	var body struct{}
	if len(bytes.TrimSpace(r.Content)) == 0 {
		r.Content = []byte("{}")
	}
	if bad := p.readJSON(r, &body); bad != nil {
		p.answer(w, nil, bad)
		return
	}
	if bad := p.checkRoom(account, false); bad != nil {
		// TikTok reports an exhausted quota with status 200.
		p.fail(w, http.StatusOK, bad.code, bad.message)
		return
	}
	private := account.Settings.Private
	out := creatorInfo{
		AvatarURL: p.Avatar(r.Request, account), Username: account.Username, Nickname: account.DisplayName,
		PrivacyLevels:   privacyLevels(account),
		CommentDisabled: account.Settings.CommentDisabled, DuetDisabled: private, StitchDisabled: private,
		MaxVideoSeconds: maxVideoSeconds,
	}
	p.succeed(w, out)
}
