// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

var _ platforms.AccountInspector = (*Platform)(nil)

const (
	msgNoCreator = "TikTok did not say what this account may choose"
)

// scopeDirectPost allows direct posts, and to ask what they may choose. An
// account without it takes drafts for its inbox alone, which choose nothing.
const scopeDirectPost = "video.publish"

// quotaPause is how long an account is left alone that has used up its posts.
// They are counted within any 24 hours, and TikTok does not say when the
// earliest of them falls out.
const quotaPause = time.Hour

// The bounds of the schema on what an account may choose.
const (
	maxLevels      = 16
	maxLevelLength = 64
)

// Inspect asks what a direct post of the account may choose, and whether there is
// room for one (Content Posting API, "Query Creator Info").
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	scopes := strings.FieldsFunc(account.Token.Scopes, isSeparator)
	if len(scopes) > 0 && !slices.Contains(scopes, scopeDirectPost) {
		return platforms.AccountInfo{}, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.APIURL+"/v2/post/publish/creator_info/query/", strings.NewReader("{}"))
	if err != nil {
		return platforms.AccountInfo{}, badAddress(err)
	}
	req.Header.Set("Authorization", "Bearer "+account.Token.Access)
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	resp, err := p.client.Do(ctx, transport.Call{Platform: "tiktok", Action: "survey", Timeout: readTimeout}, req)
	if err != nil {
		return platforms.AccountInfo{}, unanswered(err)
	}
	doc, _ := jsondoc.Parse(resp.Body)
	now := p.config.Clock.Now()
	switch code := doc.Object("error").Text("code"); {
	case code == "spam_risk_too_many_posts":
		return full(platforms.PostsPerDay, false, now), nil
	case code == "reached_active_user_cap":
		return full(platforms.AppPostsPerDay, true, now), nil
	case code == "spam_risk_user_banned_from_posting":
		return platforms.AccountInfo{}, platforms.Errorf(platforms.ClassPermanent, msgBanned)
	case resp.Status != http.StatusOK || code != "ok":
		return platforms.AccountInfo{}, p.refused(resp.Status, code)
	}
	return choices(doc.Object("data"))
}

// full is what an account tells that takes no more posts.
func full(name string, appWide bool, now time.Time) platforms.AccountInfo {
	return platforms.AccountInfo{RateLimits: []platforms.RateLimit{{Name: name, BlockedUntil: now.Add(quotaPause), AppWide: appWide}}}
}

// choices reads what a creator may choose. That an account takes posts again is
// told by the absence of the opposite.
func choices(data jsondoc.Object) (platforms.AccountInfo, error) {
	var levels []string
	listed, _ := data["privacy_level_options"].([]any)
	for _, entry := range listed {
		level, ok := entry.(string)
		if ok && level != "" && len(level) <= maxLevelLength && len(levels) < maxLevels && !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	if len(levels) == 0 {
		return platforms.AccountInfo{}, platforms.Errorf(platforms.ClassUnknown, msgNoCreator)
	}
	account := &v1alpha1.TikTokAccount{
		PrivacyLevelOptions: levels,
		CommentDisabled:     data.Bool("comment_disabled"),
		DuetDisabled:        data.Bool("duet_disabled"),
		StitchDisabled:      data.Bool("stitch_disabled"),
	}
	if most, ok := data["max_video_post_duration_sec"].(json.Number); ok {
		if n, err := most.Int64(); err == nil && n > 0 && n <= math.MaxInt32 {
			account.MaxVideoPostDurationSeconds = int32(n)
		}
	}
	return platforms.AccountInfo{TikTok: account}, nil
}
