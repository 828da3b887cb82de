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
	// reason reports whether the codes occur as a post's fail_reason, and call whether they occur in the response to a
	// call.
	reason, call bool
	// remakes reports whether the upload is restarted.
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

// table lists TikTok's known errors. The first matching row applies. The texts do not vary between calls.
var table = []row{
	{
		codes: []string{"access_token_invalid"}, call: true,
		error: platforms.NewError(platforms.ClassRefresh, platforms.SubjectAccount,
			"TikTok does not accept the access token: it has ended or was revoked", ""),
		source: errorHandling,
	},
	{
		codes: []string{"scope_not_authorized", "scope_permission_missed"}, call: true,
		error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"TikTok refuses Herald's access to this account, because a permission is missing", "connect the account again and grant all of them"),
		source: errorHandling,
	},
	{
		codes: []string{"auth_removed"}, reason: true,
		error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"access to this account was withdrawn while TikTok processed the post", "connect the account again"),
		source: postStatus,
	},
	{
		codes: []string{"rate_limit_exceeded"}, call: true,
		error: platforms.NewError(platforms.ClassRateLimited, platforms.SubjectAccount,
			"this account was used more often than TikTok allows in a minute", ""),
		source: errorHandling,
	},
	{
		codes: []string{"internal_error", "server_error", "temporarily_unavailable"}, call: true,
		error:  platforms.Error{Class: platforms.ClassTransient, Problem: "TikTok has trouble and did not do what it was asked"},
		source: errorHandling + "; " + tokens,
	},
	{
		codes: []string{"internal"}, reason: true,
		error:  platforms.Error{Class: platforms.ClassTransient, Problem: "TikTok failed to process the post, by an error of its own"},
		source: postStatus,
	},
	{
		codes: []string{codePostCap}, call: true, reason: true,
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"this account has reached TikTok's limit of posts through apps for 24 hours, about 15", "wait, or post less"),
		source: directPost,
	},
	{
		codes: []string{"spam_risk_too_many_pending_share"}, call: true, reason: true,
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectAccount, PostOnly: true,
			Problem: "the inbox of this account is full: TikTok keeps five unfinished drafts", Remedy: "finish or delete some in TikTok's app",
		},
		source: `Content Posting API, "Upload"`,
	},
	{
		// Accounts that have already posted within the 24 hours are not affected, so the cap blocks only the account
		// that ran into it.
		codes: []string{codeUserCap}, call: true, reason: true,
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"as many people as TikTok allows have posted through Herald's TikTok app in 24 hours, and this account was not among them", "wait, or have TikTok audit the app"),
		source: sharing,
	},
	{
		codes: []string{"spam_risk_user_banned_from_posting"}, call: true, reason: true,
		error: platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount,
			"TikTok has banned this account from posting", "open TikTok's app with this account and do what it asks for"),
		source: directPost,
	},
	{
		codes: []string{"spam_risk"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectAccount,
			"TikTok takes what this account posts for spam, and refused the post", "wait before posting again, and post something else"),
		source: postStatus,
	},
	{
		codes: []string{"spam_risk_text"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
			"TikTok refused the caption of the post as spam or as breaking its rules", "change the caption"),
		source: postStatus,
	},
	{
		codes: []string{"app_version_check_failed"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectAccount,
			"TikTok takes drafts only for people whose app has version 31.8 or later", "update TikTok's app on the phone of the account's owner, then post again"),
		source: `Content Posting API, "Upload"`,
	},
	{
		codes: []string{"unaudited_client_can_only_post_to_private_accounts"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectApp,
			"TikTok has not audited Herald's TikTok app yet, so that it may post for private accounts only", "make the account private and post with privacy level SELF_ONLY, send drafts, or have TikTok audit the app"),
		source: directPost,
	},
	{
		codes: []string{"url_ownership_unverified"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectInstallation,
			"TikTok fetches photos only from addresses that belong to Herald's TikTok app", "the administrator has to verify the address of the media store in TikTok's developer portal"),
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
			"this account cannot choose the privacy level of the post any more", "check which it can choose in TikTok, and post again with another tiktok.privacyLevel"),
		source: directPost,
	},
	{
		codes: []string{"invalid_file_upload"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not take a file of the post: it is not as TikTok's API wants files", "change the file"),
		source: errorHandling,
	},
	{
		codes: []string{"file_format_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not take the format of a file of the post", "change the file"),
		source: postStatus,
	},
	{
		codes: []string{"duration_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not take a video of this length for this account", "make it shorter or longer"),
		source: postStatus,
	},
	{
		codes: []string{"frame_rate_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not take the frame rate of the video: it must be 23 to 60 frames a second", "change the video"),
		source: postStatus,
	},
	{
		codes: []string{"picture_size_check_failed"}, reason: true,
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"TikTok does not take the width and height of a file of the post: a video has 360 to 4096 pixels each way, a photo at most 1080 by 1920", "change the file"),
		source: postStatus,
	},
	{
		codes: []string{"publish_cancelled"}, reason: true,
		error:  platforms.Error{Class: platforms.ClassPermanent, Problem: "the post was cancelled at TikTok", Remedy: "post it again"},
		source: postStatus,
	},
	{
		codes: []string{codeUnknownID, codeAnothersID}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"TikTok does not know the upload of this post any more, or not for this account", "post it again"),
		source: postStatus,
	},
	{
		codes: []string{"invalid_param", "invalid_params"}, message: "chunk", call: true, remakes: true,
		error: platforms.NewError(platforms.ClassTransient, "",
			"TikTok did not accept the sizes of the chunks in which the video comes", ""),
		source: `Content Posting API, "Media Transfer Guide"; DayMoonDevelopment/post-for-me#327`,
	},
	{
		codes: []string{"invalid_param", "invalid_params"}, call: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"TikTok found the request invalid and does not name a part of the post", adviceUnknown),
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
