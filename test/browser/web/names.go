// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

// Names that people and screen readers know the parts of the pages by.
const (
	signIn  = "Sign in"
	signOut = "Sign out"

	mainMenu        = "Main"
	linkPosts       = "Posts"
	linkCalendar    = "Calendar"
	linkConnections = "Connections"
	linkKeys        = "API keys"
	linkTeam        = "Team"
	linkNewPost     = "New post"

	connect    = "Connect"
	disconnect = "Disconnect"

	groupKind     = "Kind of post"
	groupAccounts = "Accounts"
	groupFiles    = "Files"
	fieldText     = "Text"
	fieldTitle    = "Title"
	addFiles      = "Add files"
	addCard       = "Add post"
	later         = "Later"
	fieldTime     = "Date and time"
	publish       = "Publish"
	publishNow    = "Publish now"
	schedule      = "Schedule"
	saveDraft     = "Save draft"

	edit       = "Edit"
	duplicate  = "Duplicate"
	cancelPost = "Cancel post"

	keyName  = "Name"
	makeKey  = "Make key"
	newKey   = "New API key"
	revoke   = "Revoke"
	copyText = "Copy"
)

// Kinds of posts, as the composer calls them.
const (
	Text  = "Text"
	Image = "Image"
	Video = "Video"
	Tree  = "Thread"
)

// Titles are what pages call the platforms.
var Titles = map[string]string{
	"x": "X", "threads": "Threads", "instagram": "Instagram", "facebook": "Facebook", "tiktok": "TikTok", "youtube": "YouTube",
}

// account is what pages call an account: "@herald_demo on X".
func account(platform, handle string) string { return handle + " on " + Titles[platform] }
