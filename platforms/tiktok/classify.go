// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/herald-social/herald/platforms"
)

// What people are told about posts. None of it changes from one call to the
// next.
const (
	msgInvalid      = "TikTok refused the post as invalid: its caption, its options or its files are not as TikTok wants them; change the post"
	msgUnknownID    = "TikTok does not know the upload of this post any more, or not for this account"
	msgAppTooOld    = "TikTok takes drafts only for people whose app has version 31.8 or later; update TikTok's app on the phone of the account's owner, then post again"
	msgPostCap      = "this account has reached TikTok's limit of posts through apps for 24 hours, about 15; wait, or post less"
	msgDraftCap     = "the inbox of this account is full: TikTok keeps five unfinished drafts; finish or delete some in TikTok's app"
	msgBanned       = "TikTok has banned this account from posting; open TikTok's app, do what it asks for, and then post again"
	msgUserCap      = "as many people as TikTok allows have posted through Herald's TikTok app in 24 hours; wait, or have TikTok audit the app"
	msgUnaudited    = "TikTok has not audited Herald's TikTok app yet, so that it may post for private accounts only; make the account private and post with privacy level SELF_ONLY, send drafts, or have TikTok audit the app"
	msgUnverified   = "TikTok fetches photos only from addresses that belong to Herald's TikTok app; the administrator has to verify the address of the media store in TikTok's developer portal"
	msgPrivacy      = "this account cannot choose the privacy level of the post any more; check which it can choose in TikTok, and post again with another tiktok.privacyLevel"
	msgFormat       = "TikTok does not take the format of a file of the post; change the file"
	msgDuration     = "TikTok does not take a video of this length for this account; make it shorter or longer"
	msgFrameRate    = "TikTok does not take the frame rate of the video: it must be 23 to 60 frames a second; change the video"
	msgPictureSize  = "TikTok does not take the width and height of a file of the post: a video has 360 to 4096 pixels each way, a photo at most 1080 by 1920; change the file"
	msgPullFailed   = "TikTok could not fetch a file of the post from the media store; check that the store can be reached from the internet"
	msgCancelled    = "the post was cancelled at TikTok"
	msgInternal     = "TikTok failed to process the post, by an error of its own; Herald tries again"
	msgAuthRemoved  = "access to this account was withdrawn while TikTok processed the post; connect the account again"
	msgSpam         = "TikTok refused the post as spam; change it, or wait before posting again"
	msgSpamText     = "TikTok refused the caption of the post as spam or as breaking its rules; change the caption"
	msgFailedOf     = "TikTok could not process the post (%s); change it, or try again later"
	reasonInternal  = "internal"
	codeUnknownID   = "invalid_publish_id"
	codeAnothersID  = "token_not_authorized_for_specified_publish_id"
	codePrivacy     = "privacy_level_option_mismatch"
	codeDraftCap    = "spam_risk_too_many_pending_share"
	codeUnspecified = "unspecified"
)

// verdict is what an error asks for.
type errorClass struct {
	class   platforms.Class
	message string
}

// said looks up an error of a call, by its code. Errors about tokens, limits and
// trouble are not among them; see refused.
func said(code string) (errorClass, bool) {
	v, ok := map[string]errorClass{
		"invalid_param":                      {platforms.ClassPermanent, msgInvalid},
		"invalid_params":                     {platforms.ClassPermanent, msgInvalid},
		"app_version_check_failed":           {platforms.ClassPermanent, msgAppTooOld},
		codeUnknownID:                        {platforms.ClassPermanent, msgUnknownID},
		codeAnothersID:                       {platforms.ClassPermanent, msgUnknownID},
		"spam_risk_too_many_posts":           {platforms.ClassQuota, msgPostCap},
		codeDraftCap:                         {platforms.ClassQuota, msgDraftCap},
		"spam_risk_user_banned_from_posting": {platforms.ClassPermanent, msgBanned},
		"reached_active_user_cap":            {platforms.ClassQuota, msgUserCap},
		"unaudited_client_can_only_post_to_private_accounts": {platforms.ClassPermanent, msgUnaudited},
		"url_ownership_unverified":                           {platforms.ClassPermanent, msgUnverified},
		codePrivacy:                                          {platforms.ClassPermanent, msgPrivacy},
	}[code]
	return v, ok
}

// failedOf looks up why TikTok gave a post up.
func failedOf(reason string) *platforms.Error {
	v, ok := map[string]errorClass{
		"file_format_check_failed":  {platforms.ClassPermanent, msgFormat},
		"duration_check_failed":     {platforms.ClassPermanent, msgDuration},
		"frame_rate_check_failed":   {platforms.ClassPermanent, msgFrameRate},
		"picture_size_check_failed": {platforms.ClassPermanent, msgPictureSize},
		"video_pull_failed":         {platforms.ClassTransient, msgPullFailed},
		"photo_pull_failed":         {platforms.ClassTransient, msgPullFailed},
		"publish_cancelled":         {platforms.ClassPermanent, msgCancelled},
		reasonInternal:              {platforms.ClassTransient, msgInternal},
		"auth_removed":              {platforms.ClassReconnect, msgAuthRemoved},
		"spam_risk":                 {platforms.ClassPermanent, msgSpam},
		"spam_risk_text":            {platforms.ClassPermanent, msgSpamText},
	}[reason]
	if !ok {
		v, ok = said(reason)
	}
	if !ok {
		v = errorClass{platforms.ClassPermanent, fmt.Sprintf(msgFailedOf, word(reason))}
	}
	return &platforms.Error{Class: v.class, Problem: v.message, PostOnly: reason == codeDraftCap, Err: fmt.Errorf("the post failed with reason %.64q", reason)}
}

// reasonWord is the form of the documented reasons and codes.
var reasonWord = regexp.MustCompile(`^[a-z][a-z_]{2,60}$`)

// word returns what has the form of a documented word as it is, and nothing else
// that TikTok says.
func word(s string) string {
	if reasonWord.MatchString(s) {
		return s
	}
	return codeUnspecified
}

// refusal is an answer that is not a success.
type refusal struct {
	*platforms.Error
	// code is TikTok's word for it, and documented says that the answer is one
	// of those by which TikTok refuses, so that what was asked was not done.
	// Another may come from something between TikTok and us, after TikTok did
	// its part.
	code       string
	documented bool
}

// gone reports that TikTok does not know the publish id that it was asked about.
func (r *refusal) gone() bool {
	return r.documented && (r.code == codeUnknownID || r.code == codeAnothersID)
}

// classify reads an answer that is not a success.
func (p *Platform) classify(a answer) *refusal {
	out := &refusal{Error: p.refused(a.status, a.code), code: a.code}
	speaks := slices.Contains([]int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
	}, a.status)
	if v, ok := said(a.code); ok && speaks {
		out.Class, out.Problem, out.PostOnly = v.class, v.message, a.code == codeDraftCap
	}
	out.documented = speaks && out.Class != platforms.ClassTransient && out.Class != platforms.ClassUnknown
	if out.Class != platforms.ClassTransient && !out.documented {
		out.Class, out.Problem = platforms.ClassUnknown, fmt.Sprintf(msgNonsense, a.status)
	}
	return out
}
