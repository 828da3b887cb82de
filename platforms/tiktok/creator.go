// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	msgLevel   = "this account cannot choose the privacy level %s; post again with tiktok.privacyLevel %s"
	msgNoLevel = "this account cannot choose the privacy level %s, nor any other that a post can ask for"
	msgTooLong = "the video %q plays for %s, but this account may post at most %s; make it shorter"
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
	if err := checkLevel(privacy(&job.Content), info.levels()); err != nil {
		return creator{}, err
	}
	file := &job.Content.Media[0]
	if most := info.MaxSeconds.Seconds(); most > 0 && file.Duration.Truncate(time.Second) > most {
		return creator{}, platforms.Errorf(platforms.ClassPermanent, msgTooLong, file.Name, file.Duration.Round(time.Second), most)
	}
	return creator{noComment: bool(info.CommentDisabled), noDuet: bool(info.DuetDisabled), noStitch: bool(info.StitchDisabled)}, nil
}

// checkLevel says what is wrong with a privacy level. An account that does not
// tell its levels is passed over: TikTok itself decides.
func checkLevel(wanted v1alpha1.TikTokPrivacyLevel, options []string) *platforms.Error {
	if len(options) == 0 || slices.Contains(options, string(wanted)) {
		return nil
	}
	var can []string
	for _, level := range []v1alpha1.TikTokPrivacyLevel{v1alpha1.TikTokPublicToEveryone, v1alpha1.TikTokSelfOnly} {
		if slices.Contains(options, string(level)) {
			can = append(can, string(level))
		}
	}
	message := fmt.Sprintf(msgNoLevel, wanted)
	if len(can) > 0 {
		message = fmt.Sprintf(msgLevel, wanted, strings.Join(can, " or "))
	}
	return platforms.Errorf(platforms.ClassPermanent, "%s", message)
}
