// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// kinds override the default classifications with texts about Pages, which do not vary between calls.
var kinds = map[meta.Kind]platforms.Error{
	meta.KindToken: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "Facebook no longer accepts the Page's access token: access was withdrawn, or the password or the role of the person who connected it has changed",
		Remedy:  "connect the Page again",
	},
	meta.KindPermission: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "Facebook refuses Herald's access to this Page, because a permission or the task of creating content is missing",
		Remedy:  "connect the Page again and allow posting",
	},
	meta.KindPerson: {
		Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount,
		Problem: "Facebook lets this Page publish nothing until its owner confirms something (code {error})",
		Remedy:  "open Facebook with the Page's account and do what it asks for",
	},
	meta.KindLimit: {
		Class: platforms.ClassRateLimited, Subject: platforms.SubjectAccount,
		Problem: "Facebook limits how often this Page may be used, and the limit is reached",
	},
	meta.KindBlocked: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "Facebook keeps this Page from posting for a while, because of what or how often it posted (code {error})",
		Remedy:  "wait, or post less",
	},
	meta.KindQuota: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "this Page has reached Facebook's limit of posts for 24 hours", Remedy: "wait, or post less",
	},
	meta.KindDuplicate: {
		Class:   platforms.ClassDuplicate,
		Problem: "Facebook refused the post as a repetition of the Page's latest one",
		Remedy:  "if there is none, change the text",
	},
	meta.KindLost: {Class: platforms.ClassTransient, Problem: "Facebook no longer has a photo that was uploaded for the post (code {error})"},
}

// Classifications of errors that only Facebook returns.
var (
	badAddress = platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
		"Facebook refused an address in the text (code {error}): it cannot be read, or Facebook does not allow it", "change the address, or leave it out")
	badPhoto = platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile,
		"Facebook refused a photo of the post (code {error}): its format or size is not one that Facebook takes", "change the file")
)

const (
	handling = "Graph API, \"Handling Errors\""
	seen     = "seen by clients (gitroomhq/postiz-app, Facebook provider)"
)

var errorRows = meta.With(
	meta.Row{Code: 324, Kind: meta.KindFile, Meaning: "the image is missing or cannot be read", Error: &badPhoto, Source: "Graph API reference, \"Page Photos\""},
	meta.Row{Code: 1500, Kind: meta.KindText, Meaning: "an address cannot be read", Error: &badAddress, Source: handling},
	meta.Row{Subcode: 1366046, Kind: meta.KindFile, Meaning: "the photo is too large, or in a format that Facebook does not take", Error: &badPhoto, Source: seen},
	meta.Row{Subcode: 1609005, Kind: meta.KindText, Meaning: "an address cannot be read", Error: &badAddress, Source: "Graph API, \"Handling Errors\" (Link Post failures)"},
	meta.Row{Subcode: 1609008, Kind: meta.KindText, Meaning: "an address is not allowed", Error: &badAddress, Source: seen},
	meta.Row{Subcode: 2061006, Kind: meta.KindText, Meaning: "an address is not allowed", Error: &badAddress, Source: seen},
)
