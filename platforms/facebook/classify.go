// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// kinds are the errors of Facebook that have words of their own, since they are
// about Pages. None of them changes from one call to the next.
var kinds = map[meta.Kind]platforms.Error{
	meta.KindToken: {
		Class:   platforms.ClassReconnect,
		Problem: "Facebook no longer accepts the Page's access token: access was withdrawn, or the password or the role of the person who connected it has changed",
		Remedy:  "connect the Page again",
	},
	meta.KindPermission: {
		Class:   platforms.ClassReconnect,
		Problem: "Facebook refuses Herald's access to this Page, because a permission or the task of creating content is missing",
		Remedy:  "connect the Page again and allow posting",
	},
	meta.KindPerson: {
		Class:   platforms.ClassPermanent,
		Problem: "Facebook asks the Page's owner to confirm something first",
		Remedy:  "open Facebook, do what it asks for, and then post again",
	},
	meta.KindLimit: {Class: platforms.ClassRateLimited, Problem: "Facebook limits how often this Page may be used, and the limit is reached"},
	meta.KindBlocked: {
		Class:   platforms.ClassQuota,
		Problem: "Facebook keeps this Page from posting for a while, because of what or how often it posted",
		Remedy:  "wait, or post less",
	},
	meta.KindQuota: {Class: platforms.ClassQuota, Problem: "this Page has reached Facebook's limit of posts for 24 hours", Remedy: "wait, or post less"},
	meta.KindDuplicate: {
		Class:   platforms.ClassDuplicate,
		Problem: "Facebook refused the post as a repetition of the Page's latest one",
		Remedy:  "if there is none, change the text",
	},
	meta.KindOther: {
		Class:   platforms.ClassPermanent,
		Problem: "Facebook refused the post (error {error}): it may be too long, hold an address that Facebook does not allow, or break another of its rules",
		Remedy:  "change the text",
	},
}
