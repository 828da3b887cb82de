// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

// Accessible names of the parts of the pages.
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

	// connect is followed by the name of a platform.
	connect     = "Connect"
	connectThis = "Connect this account"
	disconnect  = "Disconnect"

	groupKind     = "Kind of post"
	groupAccounts = "Where it goes"
	groupImages   = "Images"
	groupVideo    = "Video"
	groupWhen     = "When"
	fieldText     = "Text"
	// otherText is followed by the name of a platform, and opens the field for a separate text.
	otherText  = "Different text for"
	fieldTitle = "Title on YouTube"
	// fieldPart is followed by the number of a thread's part.
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
	makeKey = "Create a key"
	revoke  = "Revoke"
)

// Labels of the kinds of posts in the composer.
const (
	Text  = "Text"
	Image = "Images"
	Video = "Video"
	Tree  = "Thread"
)

// Labels of the publishing times in the composer.
const (
	Now     = "Now"
	Later   = "At a time"
	AsDraft = "Keep as a draft"
)

// Titles are the platforms' names on the pages.
var Titles = map[string]string{
	"x": "X", "threads": "Threads", "instagram": "Instagram", "facebook": "Facebook", "tiktok": "TikTok", "youtube": "YouTube",
}

// Names on the pages that show agents' grants.
const (
	linkAgents = "Agents"
	groupMay   = "It may"
	allow      = "Allow"
	deny       = "Deny"
)
