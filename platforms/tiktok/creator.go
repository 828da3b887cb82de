// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// pathCreatorInfo asks what an account may post.
const pathCreatorInfo = "/v2/post/publish/creator_info/query/"

// creatorInfo is what TikTok says that an account may post.
type creatorInfo struct {
	PrivacyLevels   []jsondoc.Text `json:"privacy_level_options"`
	CommentDisabled jsondoc.Flag   `json:"comment_disabled"`
	DuetDisabled    jsondoc.Flag   `json:"duet_disabled"`
	StitchDisabled  jsondoc.Flag   `json:"stitch_disabled"`
	MaxSeconds      jsondoc.Text   `json:"max_video_post_duration_sec"`
}

// levels are the privacy levels that the account can choose.
func (c *creatorInfo) levels() []string {
	var levels []string
	for _, level := range c.PrivacyLevels {
		if level != "" {
			levels = append(levels, level.String())
		}
	}
	return levels
}

// creator is what an account has disabled for its posts.
type creator struct {
	noComment, noDuet, noStitch bool
}

// checkCreator asks what the account may post, which TikTok wants to be asked
// before each post, and whether the video or the photos are among it.
func (p *Platform) checkCreator(ctx context.Context, job platforms.Job) (creator, *platforms.Error) {
	info, bad := ask[creatorInfo](ctx, p, "creator", pathCreatorInfo, job.Account.Token, struct{}{})
	if bad != nil {
		return creator{}, bad.Error
	}
	if err := checkLevel(privacy(&job.Content.TikTok), info.levels()); err != nil {
		return creator{}, err
	}
	file := &job.Content.Media[0]
	if most := info.MaxSeconds.Seconds(); most > 0 && file.Duration.Truncate(time.Second) > most {
		return creator{}, platforms.Errorf(platforms.ClassPermanent,
			"the video %q plays for %s, but this account may post at most %s", file.Name, file.Duration.Round(time.Second), most).Advise("make it shorter")
	}
	return creator{noComment: bool(info.CommentDisabled), noDuet: bool(info.DuetDisabled), noStitch: bool(info.StitchDisabled)}, nil
}
