// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/herald-social/herald/platforms"
)

// The codes that more than the tables look at.
const (
	codeUnknownID  = "invalid_publish_id"
	codeAnothersID = "token_not_authorized_for_specified_publish_id"
	codePostCap    = "spam_risk_too_many_posts"
	codeDraftCap   = "spam_risk_too_many_pending_share"
	codeUserCap    = "reached_active_user_cap"
	codeBanned     = "spam_risk_user_banned_from_posting"
)

// What several errors ask for. No text changes from one call to the next.
var (
	invalid = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "TikTok refused the post as invalid: its caption, its options or its files are not as TikTok wants them",
		Remedy:  "change the post",
	}
	unknownID  = platforms.Error{Class: platforms.ClassPermanent, Problem: "TikTok does not know the upload of this post any more, or not for this account"}
	pullFailed = platforms.Error{
		Class:   platforms.ClassTransient,
		Problem: "TikTok could not fetch a file of the post from the media store",
		Remedy:  "check that the store can be reached from the internet",
	}
)

// refusals are the errors of calls, by their codes. Those about tokens, limits
// and trouble are not among them; see refused.
var refusals = map[string]platforms.Error{
	"invalid_param":  invalid,
	"invalid_params": invalid,
	"app_version_check_failed": {
		Class:   platforms.ClassPermanent,
		Problem: "TikTok takes drafts only for people whose app has version 31.8 or later",
		Remedy:  "update TikTok's app on the phone of the account's owner, then post again",
	},
	codeUnknownID:  unknownID,
	codeAnothersID: unknownID,
	codePostCap:    {Class: platforms.ClassQuota, Problem: "this account has reached TikTok's limit of posts through apps for 24 hours, about 15", Remedy: "wait, or post less"},
	codeDraftCap: {
		Class:    platforms.ClassQuota,
		Problem:  "the inbox of this account is full: TikTok keeps five unfinished drafts",
		Remedy:   "finish or delete some in TikTok's app",
		PostOnly: true,
	},
	codeBanned: {
		Class:   platforms.ClassPermanent,
		Problem: "TikTok has banned this account from posting",
		Remedy:  "open TikTok's app, do what it asks for, and then post again",
	},
	codeUserCap: {
		Class:   platforms.ClassQuota,
		Problem: "as many people as TikTok allows have posted through Herald's TikTok app in 24 hours",
		Remedy:  "wait, or have TikTok audit the app",
	},
	"unaudited_client_can_only_post_to_private_accounts": {
		Class:   platforms.ClassPermanent,
		Problem: "TikTok has not audited Herald's TikTok app yet, so that it may post for private accounts only",
		Remedy:  "make the account private and post with privacy level SELF_ONLY, send drafts, or have TikTok audit the app",
	},
	"url_ownership_unverified": {
		Class:   platforms.ClassPermanent,
		Problem: "TikTok fetches photos only from addresses that belong to Herald's TikTok app",
		Remedy:  "the administrator has to verify the address of the media store in TikTok's developer portal",
	},
	"privacy_level_option_mismatch": {
		Class:   platforms.ClassPermanent,
		Problem: "this account cannot choose the privacy level of the post any more",
		Remedy:  "check which it can choose in TikTok, and post again with another tiktok.privacyLevel",
	},
}

// failures are why TikTok gave a post up, beside the refusals.
var failures = map[string]platforms.Error{
	"file_format_check_failed": {Class: platforms.ClassPermanent, Problem: "TikTok does not take the format of a file of the post", Remedy: "change the file"},
	"duration_check_failed":    {Class: platforms.ClassPermanent, Problem: "TikTok does not take a video of this length for this account", Remedy: "make it shorter or longer"},
	"frame_rate_check_failed": {
		Class:   platforms.ClassPermanent,
		Problem: "TikTok does not take the frame rate of the video: it must be 23 to 60 frames a second",
		Remedy:  "change the video",
	},
	"picture_size_check_failed": {
		Class:   platforms.ClassPermanent,
		Problem: "TikTok does not take the width and height of a file of the post: a video has 360 to 4096 pixels each way, a photo at most 1080 by 1920",
		Remedy:  "change the file",
	},
	"video_pull_failed": pullFailed,
	"photo_pull_failed": pullFailed,
	"publish_cancelled": {Class: platforms.ClassPermanent, Problem: "the post was cancelled at TikTok"},
	"internal":          {Class: platforms.ClassTransient, Problem: "TikTok failed to process the post, by an error of its own"},
	"auth_removed":      {Class: platforms.ClassReconnect, Problem: "access to this account was withdrawn while TikTok processed the post", Remedy: "connect the account again"},
	"spam_risk":         {Class: platforms.ClassPermanent, Problem: "TikTok refused the post as spam", Remedy: "change it, or wait before posting again"},
	"spam_risk_text":    {Class: platforms.ClassPermanent, Problem: "TikTok refused the caption of the post as spam or as breaking its rules", Remedy: "change the caption"},
}

// failedOf says why TikTok gave a post up.
func failedOf(reason string) *platforms.Error {
	failure, ok := failures[reason]
	if !ok {
		failure, ok = refusals[reason]
	}
	if !ok {
		failure = *platforms.Errorf(platforms.ClassPermanent, "TikTok could not process the post (%s)", word(reason)).Advise("change it, or try again later")
	}
	return failure.Because(fmt.Errorf("the post failed with reason %.64q", reason))
}

// reasonWord is the form of the documented reasons and codes.
var reasonWord = regexp.MustCompile(`^[a-z][a-z_]{2,60}$`)

// word returns what has the form of a documented word as it is, and nothing else
// that TikTok says.
func word(s string) string {
	if reasonWord.MatchString(s) {
		return s
	}
	return "unspecified"
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
func (p *Platform) classify(status int, code string) *refusal {
	out := &refusal{Error: p.refused(status, code), code: code}
	speaks := slices.Contains([]int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
	}, status)
	if known, ok := refusals[code]; ok && speaks {
		known.RetryAt, known.Err = out.RetryAt, out.Err
		out.Error = &known
	}
	out.documented = speaks && out.Class != platforms.ClassTransient && out.Class != platforms.ClassUnknown
	if out.Class != platforms.ClassTransient && !out.documented {
		out.Error = p.api.Nonsense(status, out.Err)
	}
	return out
}

// limitPause is how long TikTok counts calls: a sliding window of a minute. It
// sends no header that would say more.
const limitPause = time.Minute

// refused reads an error of the API. TikTok sends some with status 200.
func (p *Platform) refused(status int, code string) *platforms.Error {
	cause := fmt.Errorf("HTTP status %d with error %.64q", status, code)
	switch {
	case code == "access_token_invalid":
		return platforms.Errorf(platforms.ClassRefresh, "TikTok does not accept the access token: it has ended or was revoked").Because(cause)
	case code == "scope_not_authorized", code == "scope_permission_missed":
		return platforms.Errorf(platforms.ClassReconnect, "TikTok refuses Herald's access to this account, because a permission is missing").
			Advise("connect the account again and grant all of them").Because(cause)
	case code == "rate_limit_exceeded", status == http.StatusTooManyRequests:
		return p.limited(cause)
	case slices.Contains([]string{"internal_error", "server_error", "temporarily_unavailable"}, code), status >= http.StatusInternalServerError:
		return p.api.Busy(cause)
	default:
		return p.api.Nonsense(status, cause)
	}
}

// limited says that TikTok was called too often.
func (p *Platform) limited(cause error) *platforms.Error {
	failure := platforms.Errorf(platforms.ClassRateLimited, "this account was used more often than TikTok allows in a minute").Because(cause)
	failure.RetryAt = p.clock.Now().Add(limitPause)
	return failure
}
