// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

// Names that people and screen readers know the parts of the pages by.
const (
	signIn  = "Sign in"
	signOut = "Sign out"

	mainMenu     = "Main"
	linkOverview = "Overview"
	linkPosts    = "Posts"
	linkCalendar = "Calendar"
	linkAccounts = "Accounts"
	linkKeys     = "API keys"
	linkTeam     = "Team"
	linkNewPost  = "New post"

	// connect stands before the name of a platform.
	connect     = "Connect"
	connectThis = "Connect this account"
	disconnect  = "Disconnect"

	groupKind     = "Kind of post"
	groupAccounts = "Where it goes"
	groupImages   = "Images"
	groupVideo    = "Video"
	groupWhen     = "When"
	fieldText     = "Text"
	// otherText stands before the name of a platform, and opens the field for a text of its own.
	otherText  = "Another text for"
	fieldTitle = "Title on YouTube"
	// fieldPart stands before the number of a part of a thread.
	fieldPart = "Part"
	addPart   = "Add a part"
	fieldTime = "Day and time"
	publish   = "Publish now"
	schedule  = "Schedule"
	saveDraft = "Save draft"

	edit       = "Edit"
	duplicate  = "Duplicate"
	cancelPost = "Cancel post"

	keyName = "What is it for?"
	makeKey = "Make a key"
	revoke  = "Revoke"
)

// Kinds of posts, as the composer calls them.
const (
	Text  = "Text"
	Image = "Images"
	Video = "Video"
	Tree  = "Thread"
)

// When a post goes out, as the composer calls it.
const (
	Now     = "Now"
	Later   = "At a time"
	AsDraft = "Keep as a draft"
)

// Titles are what pages call the platforms.
var Titles = map[string]string{
	"x": "X", "threads": "Threads", "instagram": "Instagram", "facebook": "Facebook", "tiktok": "TikTok", "youtube": "YouTube",
}

// Names of what people allow agents.
const (
	linkAgents = "Agents"
	groupMay   = "It may"
	allow      = "Allow"
	deny       = "Deny"
)
