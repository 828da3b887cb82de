// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"

	"github.com/herald-social/herald/platforms"
)

// sign is one form of an error. A response matches if it has all properties that are set.
type sign struct {
	status int
	// kind is the last path segment of a problem's "type", and code a numeric code of the old API.
	kind, code string
	// words must all occur in the response's text, in lower case.
	words []string
	// spent is the header prefix of an exhausted rate limit.
	spent string
}

type row struct {
	// signs are the error's forms; one match is enough.
	signs []sign
	// replies restricts the row to replies.
	replies bool
	// general marks an error without a specific cause. The row is skipped if the response also has an unlisted code,
	// which is more specific.
	general bool
	// remakes reports whether the files must be uploaded again, because X has lost them.
	remakes bool
	error   platforms.Error
	// source is the page that documents the error, or the client where it was observed.
	source string
}

const (
	responseCodes = `X, "Response codes"`
	problemTypes  = `X API v2, "Response Codes and Errors"`
	managePosts   = `X API v2, "Manage Posts"`
	createPost    = `X API v2, "Create or Edit Post"`
	rateLimitPage = `X API v2, "Rate Limits"`
)

const (
	noticeInX   = "sign in at x.com as this account and follow the instructions"
	waitOrLess  = "wait, or post less often"
	changeText  = "change the text"
	notMentions = "X accepts replies from an app on a self-serve plan only if the author of the parent post has mentioned or quoted the account"
	replyAdvice = "publish the rest of the tree manually, or have the administrator use an app with an Enterprise plan"
)

// table lists X's known errors. The first matching row applies. The messages do not vary between calls.
var table = []row{
	{
		signs: []sign{
			{status: http.StatusUnauthorized, kind: "unsupported-authentication"},
			{status: http.StatusForbidden, kind: "unsupported-authentication"},
		},
		error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"X does not accept this kind of token", "connect the account again, with OAuth 2.0"),
		source: problemTypes,
	},
	{
		signs: []sign{{status: http.StatusUnauthorized, code: "416"}, {status: http.StatusForbidden, code: "416"}},
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
			Problem: "X has suspended Herald's X app", Remedy: "the owner of the app must check its notices in X's developer console",
		},
		source: responseCodes,
	},
	{
		signs: []sign{{status: http.StatusUnauthorized}},
		error: platforms.NewError(platforms.ClassRefresh, platforms.SubjectAccount,
			"X does not accept the access token: it has expired or was revoked", ""),
		source: problemTypes,
	},
	{
		signs: []sign{{status: http.StatusPaymentRequired}},
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
			Problem: "the credits of the X app are used up", Remedy: "the owner of the app must add credits in X's developer console",
		},
		source: `X API, "Pricing": CreditsDepleted`,
	},
	{
		signs: []sign{{status: http.StatusTooManyRequests, kind: "usage-capped"}, {status: http.StatusForbidden, kind: "usage-capped"}},
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
			Problem: "the X app has reached its usage cap", Remedy: "the owner of the app must raise it, or wait for the next period",
		},
		source: problemTypes,
	},
	{
		signs: []sign{{status: http.StatusTooManyRequests, spent: appDaily}},
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
			Problem: "the X app has reached X's 24-hour post limit for all its accounts together", Remedy: waitOrLess,
		},
		source: rateLimitPage,
	},
	{
		signs: []sign{{status: http.StatusTooManyRequests, spent: userDaily}},
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"this account has reached X's 24-hour post limit", waitOrLess),
		source: rateLimitPage,
	},
	{
		signs: []sign{{status: http.StatusTooManyRequests}},
		error: platforms.NewError(platforms.ClassRateLimited, platforms.SubjectAccount,
			"this account has reached X's rate limit", ""),
		source: rateLimitPage,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "187"},
			{status: http.StatusForbidden, words: []string{"duplicate content"}},
		},
		error: platforms.NewError(platforms.ClassDuplicate, "",
			"X refused the post as a duplicate of an earlier one from this account", "if no earlier one exists, change the text"),
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "326"},
			{status: http.StatusForbidden, words: []string{"account is temporarily locked"}},
		},
		error: platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount,
			"X has temporarily locked this account", noticeInX+" to unlock it"),
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "64"},
			{status: http.StatusForbidden, code: "63"},
			{status: http.StatusForbidden, kind: "user-suspended"},
			{status: http.StatusForbidden, words: []string{"account is suspended"}},
			{status: http.StatusForbidden, words: []string{"user has been suspended"}},
		},
		error: platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount,
			"X has suspended this account", "appeal to X; nothing can be posted until X lifts the suspension"),
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "185"},
			{status: http.StatusForbidden, words: []string{"daily status update limit"}},
		},
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"this account has used up its posting limit on X and may not post more at the moment", waitOrLess),
		source: responseCodes + ": windows of unspecified duration",
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "226"},
			{status: http.StatusForbidden, words: []string{"might be automated"}},
		},
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"X considers the activity of this account automated and has temporarily restricted it", "wait and post less, or "+noticeInX),
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "344"},
			{status: http.StatusForbidden, words: []string{"daily limit for sending"}},
		},
		error: platforms.NewError(platforms.ClassQuota, platforms.SubjectAccount,
			"this account has reached X's daily limit of posts and messages", waitOrLess),
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, kind: "client-forbidden", words: []string{"client-not-enrolled"}},
			{status: http.StatusForbidden, code: "453"},
		},
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
			Problem: "the X app is not enrolled: it does not belong to a project, or its plan does not allow this",
			Remedy:  "the owner of the app must attach it to a project in X's developer console",
		},
		source: problemTypes + `: "App not enrolled or lacks required access"`,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "261"},
			{status: http.StatusForbidden, words: []string{"cannot perform write actions"}},
		},
		error: platforms.Error{
			Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true,
			Problem: "X does not allow Herald's X app to write", Remedy: "the owner of the app must check its notices in X's developer console",
		},
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, kind: "client-forbidden"},
			{status: http.StatusForbidden, kind: "oauth1-permissions"},
			{status: http.StatusForbidden, kind: "not-authorized-for-resource"},
			{status: http.StatusForbidden, code: "220"},
			{status: http.StatusForbidden, code: "87"},
		},
		error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
			"X denies Herald access to this account: a permission is missing, or the app may not post for it", "connect the account again and allow reading and writing"),
		source: problemTypes,
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "433"},
			{status: http.StatusForbidden, words: []string{"reply to this conversation is not allowed"}},
			{status: http.StatusForbidden, words: []string{"restricted who can reply"}},
		},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectApp,
			"X did not allow the app to post this reply: "+notMentions, replyAdvice),
		source: managePosts + ", and X's changelog of 23 February 2026",
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "385"},
			{status: http.StatusForbidden, words: []string{"deleted or not visible to you"}},
		},
		error: platforms.NewError(platforms.ClassPermanent, "",
			"the post that this card replies to was deleted, or this account may not see it", "publish the rest of the tree as a new post"),
		source: responseCodes,
	},
	{
		signs: []sign{{status: http.StatusForbidden, words: []string{"not allowed to post a video longer than"}}},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"the video is longer than X allows for this account", "make it shorter, or subscribe the account to X Premium"),
		source: createPost + ": 403 for the video's length",
	},
	{
		signs: []sign{
			{status: http.StatusForbidden, code: "186"},
			{status: http.StatusForbidden, words: []string{"needs to be a bit shorter"}},
			{status: http.StatusForbidden, words: []string{"text is too long"}},
		},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
			"the text is longer than X allows for this account", "make it shorter"),
		source: responseCodes,
	},
	{
		signs: []sign{
			{status: http.StatusBadRequest, code: "407"},
			{status: http.StatusForbidden, code: "407"},
			{status: http.StatusForbidden, words: []string{"invalid url"}},
			{status: http.StatusBadRequest, words: []string{"invalid url"}},
			{status: http.StatusForbidden, words: []string{"identified by", "potentially harmful"}},
		},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
			"X does not accept an address in the text: it is not a valid address, or X blocks it as harmful", "change the address, or remove it"),
		source: responseCodes + "; message of the 403 response: gitroomhq/postiz-app",
	},
	{
		signs: []sign{{status: http.StatusForbidden, words: []string{"cashtag"}}, {status: http.StatusBadRequest, words: []string{"cashtag"}}},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
			"X allows at most one cashtag ($ABC) in a post sent by an app on a self-serve plan", "remove the others"),
		source: managePosts,
	},
	{
		signs: []sign{
			{status: http.StatusBadRequest, words: []string{"media ids are invalid"}},
			{status: http.StatusBadRequest, code: "325"},
			{status: http.StatusForbidden, code: "325"},
		},
		remakes: true,
		error: platforms.NewError(platforms.ClassTransient, platforms.SubjectFile,
			"X no longer has the uploaded files of the post", ""),
		source: responseCodes + "; PLhery/node-twitter-api-v2#375, tweepy/tweepy#2016",
	},
	{
		signs: []sign{
			{status: http.StatusBadRequest, code: "323"},
			{status: http.StatusBadRequest, code: "324"},
			{status: http.StatusForbidden, code: "323"},
			{status: http.StatusForbidden, code: "324"},
			{status: http.StatusForbidden, code: "386"},
			{status: http.StatusBadRequest, words: []string{"$.media"}},
		},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
			"X does not accept these files together in one post", "use up to four images, or one video"),
		source: responseCodes,
	},
	{
		signs: []sign{{status: http.StatusBadRequest, words: []string{"$.text"}}},
		error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
			"X found the text of the post invalid: it may be too long, or contain a character that X does not accept", changeText),
		source: problemTypes + `: the parameter at the start of a message in "errors"`,
	},
	{
		signs:   []sign{{status: http.StatusForbidden, words: []string{"not permitted to perform this action"}}},
		replies: true,
		general: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"X does not permit this reply and gives no reason; "+notMentions, replyAdvice),
		source: managePosts + ", and X's changelog of 23 February 2026",
	},
	{
		signs:   []sign{{status: http.StatusForbidden, words: []string{"not permitted to perform this action"}}},
		general: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"X does not permit this post and gives no reason", adviceUnknown),
		source: problemTypes,
	},
	{
		signs:   []sign{{status: http.StatusBadRequest, kind: "invalid-request"}},
		general: true,
		error: platforms.NewError(platforms.ClassPermanent, "",
			"X found the request invalid and does not identify a part of the post", adviceUnknown),
		source: problemTypes,
	},
}
