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
	msgLevel     = "this account cannot choose the privacy level %s; post again with tiktok.privacyLevel %s"
	msgNoLevel   = "this account cannot choose the privacy level %s, nor any other that a post can ask for"
	msgTooLong   = "the video %q plays for %s, but this account may post at most %s; make it shorter"
	levelsAnswer = "privacy_level_options"
)

// creator is what TikTok says that an account may post.
type creator struct {
	noComment, noDuet, noStitch bool
}

// checkCreator asks what the account may post, which TikTok wants to be asked
// before each post, and whether the video or the photos are among it.
func (p *Platform) checkCreator(ctx context.Context, job platforms.Job) (creator, *platforms.Error) {
	info, bad := p.ask(ctx, "creator", "/v2/post/publish/creator_info/query/", job.Account.Token, struct{}{})
	if bad != nil {
		return creator{}, bad.Error
	}
	if err := checkLevel(privacy(&job.Content), info); err != nil {
		return creator{}, err
	}
	file := &job.Content.Media[0]
	if most := info.Seconds("max_video_post_duration_sec"); most > 0 && file.Duration.Truncate(time.Second) > most {
		return creator{}, platforms.Errorf(platforms.ClassPermanent, msgTooLong, file.Name, file.Duration.Round(time.Second), most)
	}
	return creator{
		noComment: info.Bool("comment_disabled"), noDuet: info.Bool("duet_disabled"), noStitch: info.Bool("stitch_disabled"),
	}, nil
}

// checkLevel says what is wrong with a privacy level. An account that does not
// tell its levels is passed over: TikTok itself decides.
func checkLevel(wanted v1alpha1.TikTokPrivacyLevel, info jsondoc.Object) *platforms.Error {
	listed, _ := info[levelsAnswer].([]any)
	var options []string
	for _, v := range listed {
		if level, ok := v.(string); ok {
			options = append(options, level)
		}
	}
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
