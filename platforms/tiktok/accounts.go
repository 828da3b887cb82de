// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// refreshDead is the error for a token that can no longer be renewed.
var refreshDead = platforms.NewError(platforms.ClassReconnect, "",
	"TikTok no longer accepts the refresh token: access was withdrawn, or it has expired", "connect the account again")

const (
	// scopeProfile allows reading the username.
	scopeProfile = "user.info.profile"
	// scopeDirectPost allows posting directly and reading the account's options for direct posts. An account
	// without it accepts only drafts for its inbox, which have no options.
	scopeDirectPost = "video.publish"
)

var _ platforms.AccountInspector = (*Platform)(nil)

func hasScope(token platforms.Token, scope string) bool {
	scopes := oauth2.Scopes(token.Scopes)
	return len(scopes) == 0 || slices.Contains(scopes, scope)
}

// Identify returns the account that a token belongs to. The username is known only if its scope was granted.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	fields := "open_id,avatar_url,display_name"
	if hasScope(token, scopeProfile) {
		fields += ",username"
	}
	resp, err := p.API.Do(ctx, client.Call{Action: "identify", Path: "/v2/user/info/?fields=" + fields, Token: token.Access, Timeout: readTimeout})
	if err != nil {
		return platforms.Identity{}, p.API.Unanswered(err)
	}
	answer := decode[struct {
		User struct {
			OpenID      jsondoc.Text `json:"open_id"`
			DisplayName jsondoc.Text `json:"display_name"`
			Username    jsondoc.Text `json:"username"`
			AvatarURL   jsondoc.Text `json:"avatar_url"`
		} `json:"user"`
	}](resp)
	user := answer.Data.User
	switch {
	case !answer.ok():
		return platforms.Identity{}, p.classifyAccount(answer.apiError())
	case user.OpenID == "":
		return platforms.Identity{}, p.API.NoIdentity(nil)
	}
	return platforms.Identity{
		AccountID: user.OpenID.String(), DisplayName: user.DisplayName.String(), Username: user.Username.String(), IconURL: user.AvatarURL.String(),
	}, nil
}

// quotaPause is how long an account pauses when its posting quota is exhausted. The quota covers a sliding window of 24
// hours, and TikTok does not report when the oldest post leaves it.
const quotaPause = time.Hour

// The API schema's limits on an account's options.
const (
	maxLevels      = 16
	maxLevelLength = 64
)

// Inspect returns the account's options for direct posts, and whether its quota allows one (Content Posting API, "Query
// Creator Info").
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	if !hasScope(account.Token, scopeDirectPost) {
		return platforms.AccountInfo{}, nil
	}
	answer, err := postJSON[creatorInfo](ctx, p, "survey", pathCreatorInfo, account.Token, struct{}{}, readTimeout)
	if err != nil {
		return platforms.AccountInfo{}, p.API.Unanswered(err)
	}
	now := p.Clock.Now()
	switch code := answer.Error.Code; {
	case code == codePostCap:
		return quotaExhausted(platforms.PostsPerDay, now), nil
	case code == codeUserCap:
		// Accounts that have already posted through the app are not affected.
		return quotaExhausted(platforms.AppPostsPerDay, now), nil
	case !answer.ok():
		return platforms.AccountInfo{}, p.classifyAccount(answer.apiError())
	}
	return choices(&answer.Data)
}

// quotaExhausted returns the AccountInfo for an account whose quota is exhausted.
func quotaExhausted(name string, now time.Time) platforms.AccountInfo {
	return platforms.AccountInfo{RateLimits: []platforms.RateLimit{{Name: name, BlockedUntil: now.Add(quotaPause)}}}
}

// choices converts the creator info to the account's options. The result has no rate limit, which means that the
// account accepts posts.
func choices(info *creatorInfo) (platforms.AccountInfo, error) {
	var levels []string
	for _, level := range info.levels() {
		if len(level) <= maxLevelLength && len(levels) < maxLevels && !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	if len(levels) == 0 {
		return platforms.AccountInfo{}, platforms.Errorf(platforms.ClassUnknown, "TikTok did not return the posting options of this account")
	}
	account := &v1alpha1.TikTokAccount{
		PrivacyLevelOptions: levels,
		CommentDisabled:     bool(info.CommentDisabled),
		DuetDisabled:        bool(info.DuetDisabled),
		StitchDisabled:      bool(info.StitchDisabled),
	}
	if seconds := info.MaxSeconds.Int(); seconds > 0 && seconds <= math.MaxInt32 {
		account.MaxVideoPostDurationSeconds = int32(seconds)
	}
	return platforms.AccountInfo{TikTok: account}, nil
}

const pathCreatorInfo = "/v2/post/publish/creator_info/query/"

type creatorInfo struct {
	PrivacyLevels   []jsondoc.Text `json:"privacy_level_options"`
	CommentDisabled jsondoc.Flag   `json:"comment_disabled"`
	DuetDisabled    jsondoc.Flag   `json:"duet_disabled"`
	StitchDisabled  jsondoc.Flag   `json:"stitch_disabled"`
	MaxSeconds      jsondoc.Text   `json:"max_video_post_duration_sec"`
}

func (c *creatorInfo) levels() []string {
	var levels []string
	for _, level := range c.PrivacyLevels {
		if level != "" {
			levels = append(levels, level.String())
		}
	}
	return levels
}

// checkCreator reads the account's options, as TikTok requires before each post, and checks the privacy level and the
// video's duration against them.
func (p *Platform) checkCreator(ctx context.Context, job platforms.Job) (creatorInfo, *platforms.Error) {
	info, bad := callAPI[creatorInfo](ctx, p, "creator", pathCreatorInfo, job.Account.Token, struct{}{})
	if bad != nil {
		return creatorInfo{}, bad.Error
	}
	if err := checkLevel(privacy(&job.Content.TikTok), info.levels()); err != nil {
		return creatorInfo{}, err
	}
	file := &job.Content.Media[0]
	if most := info.MaxSeconds.Seconds(); most > 0 && file.Duration.Truncate(time.Second) > most {
		return creatorInfo{}, platforms.Errorf(platforms.ClassPermanent,
			"the video %q is %s long, but this account may post at most %s", file.Name, file.Duration.Round(time.Second), most).Advise("make it shorter")
	}
	return info, nil
}
