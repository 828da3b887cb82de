// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// kinds override the default classifications with messages about Pages. The messages do not vary between calls.
var kinds = map[meta.Kind]platforms.Error{
	meta.KindToken: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "Facebook no longer accepts the Page's access token: access was withdrawn, or the password or role of the user who connected it has changed",
		Remedy:  "connect the Page again",
	},
	meta.KindPermission: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "Facebook denies Herald access to this Page because a permission or the content creation task is missing",
		Remedy:  "connect the Page again and allow posting",
	},
	meta.KindPerson: {
		Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount,
		Problem: "Facebook does not allow this Page to publish until its owner completes a verification step (code {error})",
		Remedy:  "open Facebook with the Page's account and follow the instructions",
	},
	meta.KindLimit: {
		Class: platforms.ClassRateLimited, Subject: platforms.SubjectAccount,
		Problem: "this Page has reached Facebook's rate limit",
	},
	meta.KindBlocked: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "Facebook has temporarily blocked this Page from posting because of what or how often it posted (code {error})",
		Remedy:  "wait, or post less often",
	},
	meta.KindQuota: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "this Page has reached Facebook's 24-hour post limit", Remedy: "wait, or post less often",
	},
	meta.KindDuplicate: {
		Class:   platforms.ClassDuplicate,
		Problem: "Facebook refused the post as a duplicate of the Page's latest one",
		Remedy:  "if there is none, change the text",
	},
	meta.KindLost: {Class: platforms.ClassTransient, Problem: "Facebook no longer has a photo that was uploaded for the post (code {error})"},
}

// Classifications of errors that only Facebook returns.
var (
	badAddress = platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
		"Facebook refused an address in the text (code {error}): it cannot be read, or Facebook does not allow it", "change the address, or remove it")
	badPhoto = platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
		"Facebook refused a photo of the post (code {error}): Facebook does not support its format or size", "change the file")
)

const (
	handling = "Graph API, \"Handling Errors\""
	seen     = "observed by other clients (gitroomhq/postiz-app, Facebook provider)"
)

var errorRows = meta.With(
	meta.Row{Code: 324, Kind: meta.KindFile, Meaning: "the image is missing or cannot be read", Error: &badPhoto, Source: "Graph API reference, \"Page Photos\""},
	meta.Row{Code: 1500, Kind: meta.KindText, Meaning: "an address cannot be read", Error: &badAddress, Source: handling},
	meta.Row{Subcode: 1366046, Kind: meta.KindFile, Meaning: "the photo is too large, or in an unsupported format", Error: &badPhoto, Source: seen},
	meta.Row{Subcode: 1609005, Kind: meta.KindText, Meaning: "an address cannot be read", Error: &badAddress, Source: "Graph API, \"Handling Errors\" (Link Post failures)"},
	meta.Row{Subcode: 1609008, Kind: meta.KindText, Meaning: "an address is not allowed", Error: &badAddress, Source: seen},
	meta.Row{Subcode: 2061006, Kind: meta.KindText, Meaning: "an address is not allowed", Error: &badAddress, Source: seen},
)
