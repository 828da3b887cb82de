// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms"
)

type row struct {
	codes []string
	// message must be part of the error's message, in lower case; empty matches any.
	message string
	// reason reports whether the codes can be a post's fail_reason, and call whether they occur in responses to
	// calls.
	reason, call bool
	// remakes reports whether the upload must be restarted.
	remakes bool
	error   platforms.Error
	source  string
}

const (
	codeUnknownID  = "invalid_publish_id"
	codeAnothersID = "token_not_authorized_for_specified_publish_id"
	codePostCap    = "spam_risk_too_many_posts"
	codeUserCap    = "reached_active_user_cap"
)

const (
	errorHandling = `TikTok API v2, "Error Handling"`
	directPost    = `Content Posting API, "Direct Post"`
	postStatus    = `Content Posting API, "Get Post Status"`
	sharing       = `"Content Sharing Guidelines"`
	tokens        = `TikTok, "Manage User Access Tokens"`
)

// table lists TikTok's known errors. The first matching row applies. The messages do not vary between calls.
var table = []row{
	{
		codes: []string{"access_token_invalid"}, call: true,
		error: platforms.NewError(platforms.ClassRefresh, platforms.SubjectAccount,
			"TikTok does not accept the access token: it has expired or was revoked", ""),
		source: errorHandling,
	},
	{
		codes: []string{"scope_not_authorized", "scope_permission_missed"}, call: true,
		error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"TikTok denies Herald access to this account because a permission is missing", "connect the account again and grant all permissions"),
		source: errorHandling,
	},
	{
		codes: []string{"auth_removed"}, reason: true,
		error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"access to this account was revoked while TikTok was processing the post", "connect the account again"),
		source: postStatus,
	},
	{
		codes: []string{"rate_limit_exceeded"}, call: true,
		error: platforms.NewError(platforms.ClassRateLimited, platforms.SubjectAccount,
			"this account has reached TikTok's per-minute rate limit", ""),
		source: errorHandling,
	},
	{
		codes: []string{"internal_error", "server_error", "temporarily_unavailable"}, call: true,
		error:  platforms.Error{Class: platforms.ClassTransient, Problem: "TikTok is having problems and did not process the request"},
		source: errorHandling + "; " + tokens,
	},
	{
		codes: []string{"internal"}, reason: true,
		error:  platforms.Error{Class: platforms.ClassTransient, Problem: "TikTok failed to process the post because of an internal error"},
		source: postStatus,
	},
	{
		codes: []string{codePostCap}, call: true, reason: true,
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"this account has reached TikTok's 24-hour limit of about 15 posts through apps", "wait, or post less often"),
		source: directPost,
	},
	{
		codes: []string{"spam_risk_too_many_pending_share"}, call: true, reason: true,
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectAccount, PostOnly: true,
			Problem: "the inbox of this account is full: TikTok keeps at most five unfinished drafts", Remedy: "finish or delete some in TikTok's app",
		},
		source: `Content Posting API, "Upload"`,
	},
	{
		// Accounts that have already posted within the last 24 hours are not affected, so the cap blocks only
		// the account that reached it.
		codes: []string{codeUserCap}, call: true, reason: true,
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"Herald's TikTok app has reached TikTok's 24-hour limit of posting users, and this account is not one of them", "wait, or have TikTok audit the app"),
		source: sharing,
	},
	{
		codes: []string{"spam_risk_user_banned_from_posting"}, call: true, reason: true,
		error: platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount,
			"TikTok has banned this account from posting", "open TikTok's app with this account and follow the instructions"),
		source: directPost,
	},
	{
		codes: []string{"spam_risk"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectAccount,
			"TikTok considers this account's posts spam, and refused the post", "wait before posting again, and post something else"),
		source: postStatus,
	},
	{
		codes: []string{"spam_risk_text"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
			"TikTok refused the caption of the post as spam or as a violation of its rules", "change the caption"),
		source: postStatus,
	},
	{
		codes: []string{"app_version_check_failed"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectAccount,
			"TikTok accepts drafts only for users whose app has version 31.8 or later", "update TikTok's app on the phone of the account's owner, then post again"),
		source: `Content Posting API, "Upload"`,
	},
	{
		codes: []string{"unaudited_client_can_only_post_to_private_accounts"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectApp,
			"TikTok has not audited Herald's TikTok app yet, so the app may post only to private accounts", "make the account private and post with privacy level SELF_ONLY, send drafts, or have TikTok audit the app"),
		source: directPost,
	},
	{
		codes: []string{"url_ownership_unverified"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectInstallation,
			"TikTok fetches photos only from addresses that are verified for Herald's TikTok app", "the administrator must verify the address of the media store in TikTok's developer portal"),
		source: directPost,
	},
	{
		codes: []string{"video_pull_failed", "photo_pull_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassTransient, platforms.SubjectInstallation,
			"TikTok could not fetch a file of the post from the media store", "check that the store can be reached from the internet"),
		source: postStatus,
	},
	{
		codes: []string{"privacy_level_option_mismatch"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectAccount,
			"the privacy level of the post is no longer available to this account", "check in TikTok which levels are available, and post again with another tiktok.privacyLevel"),
		source: directPost,
	},
	{
		codes: []string{"invalid_file_upload"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not accept a file of the post: it does not meet the requirements of TikTok's API", "change the file"),
		source: errorHandling,
	},
	{
		codes: []string{"file_format_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not accept the format of a file of the post", "change the file"),
		source: postStatus,
	},
	{
		codes: []string{"duration_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not accept a video of this length for this account", "make it shorter or longer"),
		source: postStatus,
	},
	{
		codes: []string{"frame_rate_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not accept the frame rate of the video: it must be 23 to 60 frames per second", "change the video"),
		source: postStatus,
	},
	{
		codes: []string{"picture_size_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not accept the width and height of a file of the post: a video must have 360 to 4096 pixels on each side, a photo at most 1080 by 1920", "change the file"),
		source: postStatus,
	},
	{
		codes: []string{"publish_cancelled"}, reason: true,
		error:  platforms.Error{Class: platforms.ClassPermanent, Problem: "the post was cancelled on TikTok", Remedy: "post it again"},
		source: postStatus,
	},
	{
		codes: []string{codeUnknownID, codeAnothersID}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"TikTok no longer has the upload of this post, or not for this account", "post it again"),
		source: postStatus,
	},
	{
		codes: []string{"invalid_param", "invalid_params"}, message: "chunk", call: true, remakes: true,
		error: platforms.NewError(platforms.ClassTransient, "",
			"TikTok did not accept the chunk sizes of the video upload", ""),
		source: `Content Posting API, "Media Transfer Guide"; DayMoonDevelopment/post-for-me#327`,
	},
	{
		codes: []string{"invalid_param", "invalid_params"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"TikTok found the request invalid and does not identify a part of the post", adviceUnknown),
		source: errorHandling,
	},
}

func callRow(code, message string) *row {
	return find(func(r *row) bool {
		return r.call && r.has(code) && strings.Contains(strings.ToLower(message), r.message)
	})
}

func reasonRow(reason string) *row {
	return find(func(r *row) bool { return r.reason && r.has(reason) })
}

func find(fits func(*row) bool) *row {
	for i := range table {
		if fits(&table[i]) {
			return &table[i]
		}
	}
	return nil
}

func (r *row) has(code string) bool { return slices.Contains(r.codes, code) }
