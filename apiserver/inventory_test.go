// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// contractRows maps each row of the HTTP API's contract to the specs that verify it against the real server. A change
// that renames or deletes a spec fails here, and names the promise that would no longer be tested.
var contractRows = []struct {
	row   string
	specs []string
}{
	// Conventions.
	{"bodies are JSON with snake_case names; unknown ones are ignored", []string{
		"a body of exactly the limit",
	}},
	{"times are ISO 8601 in UTC, with milliseconds", []string{"stores a scheduled post as the contract and the manager want it", "listing connections"}},
	{"one resource comes as data, a list as data, that of posts with pagination", []string{
		"listing connections", "listing posts sorts, filters and pages",
	}},
	{"an error is a code and a message, whatever was sent", []string{"bad input", "the site answers what it does not have in the shape of every error"}},
	{"accounts are connected, and drafts published, elsewhere", []string{"the site answers what it does not have in the shape of every error"}},
	{"connections, posts and media belong to the team of the key", []string{
		"What belongs to another team", "is refused before it came, when it is gone, and when it is another team's",
	}},

	// Connections.
	{"a connection has id, platform, account_name, icon_url and connected_at; the middle two may be null", []string{"listing connections"}},
	{"connections are listed while they are active, and by platform", []string{"listing connections"}},
	{"an unknown platform in a query is refused", []string{
		"listing connections", "bad input in the query of a list is refused and named a list of platforms",
	}},

	// Uploads.
	{"an upload wants a type, a size of at least 1 and a name", []string{"asking for an upload URL refuses what could not be posted"}},
	{"an upload is answered with an id, a signed address and the name", []string{
		"answers an id and an address that takes exactly the stated type for 15 minutes",
	}},
	{"mp4, mov, jpeg, png and webp are taken, by type and by extension", []string{
		"asking for an upload URL takes every kind of file up to its limit",
		"asking for an upload URL refuses what could not be posted another extension",
		"asking for an upload URL refuses what could not be posted a GIF",
	}},
	{"a video has up to 1 GB, an image up to 20 MB", []string{"a video over 1 GB", "an image over 20 MB", "mp4, 1 GB", "jpg, 20 MB"}},
	{"the address holds for 15 minutes and for exactly one type", []string{
		"answers an id and an address that takes exactly the stated type for 15 minutes",
	}},

	// Lists.
	{"page begins with 1 and is moved there, limit into 1 to 100, default 20", []string{
		"listing posts sorts, filters and pages", "bad input in the query of a list that means something is taken",
	}},
	{"lists filter by each status and by platform", []string{
		"lists show each state under its own name, target by target", "listing posts sorts, filters and pages",
	}},
	{"a summary has a title: the YouTube title, or 30 characters of the caption", []string{
		"listing posts sorts, filters and pages", "is told of a video that some platforms took",
		"a draft that says nothing yet has no title and is shown by its birth",
	}},
	{"a summary has one platform with its status for each target", []string{"lists show each state under its own name, target by target"}},
	{"cancelled posts are in no list", []string{"listing posts sorts, filters and pages", "cancelling a post cancels what has not begun, once"}},
	{"a query that is none is refused", []string{"bad input in the query of a list is refused and named"}},

	// Posts: the request.
	{"category chooses one of four shapes", []string{"an unknown category", "goes to the platforms of its category and to no other; of drafts, that is held against trees alone"}},
	{"targets has at least one item", []string{"creating a post refuses what is wrong and says where no targets"}},
	{"scheduled_at may be left out or null, and means at once", []string{"answers processing for an immediate post"}},
	{"draft is false when it is left out", []string{
		"answers processing for an immediate post", "keeps a draft without a caption and without asking any platform",
	}},
	{"a field of another type is refused", []string{"of a wrong type is refused and named, in every field of every body"}},
	{"a video has media_id and may have thumbnail_time; drafts need the first too", []string{
		"a video without media_id", "a draft without media_id", "a thumbnail within the video", "a thumbnail behind the end",
	}},
	{"an image has 1 to 35 media_ids; drafts need them too", []string{
		"posts with media refuses no images", "posts with media refuses 36 images", "a draft without media_ids",
	}},
	{"connection_id is not empty and names a connection of the team", []string{
		"an unknown connection", "of a wrong type is refused and named, in every field of every body",
	}},
	{"is_ai_generated and tiktok_allow_comment concern TikTok, and elsewhere nobody", []string{
		"a label and no comments", "takes options of other platforms without effect",
	}},
	{"the target of a tree has connection_id only; five fields are refused, others ignored", []string{
		"creating a tree takes none of the fields that other targets have", "options that trees do not know",
		"as a tree ignores fields of other targets that the contract does not name",
	}},
	{"a card's caption may be left out, null or empty, its media_ids left out", []string{"a draft with a card that says nothing yet"}},

	// Posts: the eleven rules.
	{"rule 1: what each category may be sent to, for drafts too", []string{"goes to the platforms of its category and to no other; of drafts, that is held against trees alone"}},
	{"rule 2: a future time schedules", []string{
		"stores a scheduled post as the contract and the manager want it", "creating a post refuses what is wrong and says where a past time",
	}},
	{"rule 3: a draft has no time", []string{"by the contract a post of every category is never both a draft and scheduled"}},
	{"rule 4: captions may be left out in drafts only", []string{
		"by the contract a post of every category with captions needs one, unless it is a draft", "a draft to YouTube without a title",
	}},
	{"rule 5: captions have the length that their platform takes", []string{
		"by the contract a post has as much text as its platform takes", "TikTok's 2,200 characters", "2,201 characters on TikTok",
		"Instagram's 2,200 characters", "2,201 characters on Instagram", "YouTube's description of 5,000 bytes", "a description of 5,001 bytes",
	}},
	{"limits: Facebook takes captions of any length, as far as one object holds them", []string{
		"a large post is taken if it fits, with all that is ever recorded of it",
		"a large post is refused before anything is reserved, if what becomes of it would not fit beside it",
	}},
	{"rule 6: YouTube needs a title", []string{"posts with media refuses no title on YouTube", "posts with media refuses an empty title"}},
	{"rule 7: a privacy level that the account cannot choose has a code of its own", []string{
		"names the levels that a private account can choose, and posts nothing",
	}},
	{"rule 8: music for images only", []string{"music on images", "music on a video", "creating a post refuses what is wrong and says where music"}},
	{"rule 8: duets and stitches for videos only", []string{
		"a duet and a stitch on a video", "a duet on images", "a stitch on images", "creating a post refuses what is wrong and says where a duet",
		"creating a post refuses what is wrong and says where a stitch",
	}},
	{"rule 8: an inbox draft has neither music nor a privacy level", []string{
		"an inbox draft with music", "an inbox draft with a privacy level", "an inbox draft of a video",
	}},
	{"rule 9: connections that have to be connected again", []string{
		"creating a post posts to no connection that cannot be posted to expired",
		"of any category waits for every connection to be ready, and is wrong before it is early",
	}},
	{"rule 9: connections of which nothing can be learnt now", []string{
		"creating a post posts to no connection that cannot be posted to platform down",
		"of any category waits for every connection to be ready, and is wrong before it is early",
	}},
	{"rule 9: drafts are not checked", []string{"keeps a draft without a caption and without asking any platform"}},
	{"rule 10: a tree goes to X and Threads, to no connection twice", []string{
		"creating a tree refuses the same connection twice",
		"goes to the platforms of its category and to no other; of drafts, that is held against trees alone",
	}},
	{"rule 10: a tree has two cards, a draft one", []string{
		"creating a tree refuses one card", "a scheduled tree of one card", "creating a tree accepts a draft of one card",
	}},
	{"rule 10: no cards, or cards that are no list", []string{"a tree without cards, even as a draft", "tree_cards that are no list"}},
	{"rule 10: a card says or shows something, unless the tree is a draft", []string{
		"a card with neither text nor media", "a draft with a card that says nothing yet", "a tree card with media only",
	}},
	{"rule 10: types and the team's media are checked in drafts too", []string{
		"a caption that is no text", "media_ids that are no list", "a media file that there is not", "another team's file on a card, also of a draft",
	}},
	{"rule 10: lengths, counts and sizes are not checked in drafts", []string{
		"a draft whose card is too long yet", "a draft of a tree whose media are too many", "a draft of a tree whose image is too large",
		"a draft of a tree that mixes on X",
	}},
	{"rule 11: a card is as long as every chosen platform takes", []string{
		"by the contract a post as a tree has as much text on a card as every chosen platform takes",
	}},

	// Posts: the response.
	{"a post reads as it was created, in all fields", []string{
		"answers what a read answers, and lists it at once",
		"is told of a video that some platforms took", "is told of images that are scheduled", "is told of a tree of which one platform took all",
		"is told of a draft of a tree, and once it is cancelled", "is told of a draft of a video without a title or a caption",
	}},
	{"media_ids are empty for posts that did not come through the API", []string{
		"a post that came another way shows no media, and cannot be cancelled once its time has come",
	}},
	{"can_cancel is true for drafts, and for scheduled posts whose time is to come", []string{
		"lists show each state under its own name, target by target",
		"a post that came another way shows no media, and cannot be cancelled once its time has come",
	}},
	{"each platform has its status, address and error", []string{
		"is told of a video that some platforms took", "lists show each state under its own name, target by target",
	}},
	{"a connection that is gone leaves connection_id and account_name empty", []string{"is told of a video that some platforms took"}},

	// States.
	{"a draft is saved and never delivered", []string{"keeps a draft without a caption and without asking any platform"}},
	{"drafts and scheduled posts can be cancelled", []string{
		"cancelling a post cancels what has not begun, once a draft", "cancelling a post cancels what has not begun, once a scheduled post",
		"a post that is refused after it was created stays what it is, says why in the resource, and can be cancelled",
	}},
	{"what is under way, done, cancelled or immediate cannot", []string{
		"cancelling a post refuses an immediate post", "refuses a scheduled post once its delivery has begun, and what has ended",
		"never cancels what is claimed at the same time",
		"a post that came another way shows no media, and cannot be cancelled once its time has come",
	}},

	// Keys and subscriptions.
	{"every call needs a key, before anything else", []string{"API keys are needed for everything, before anything else is looked at"}},
	{"a key that is revoked, expired or gone is no key", []string{
		"API keys stop working within a second of being revoked", "API keys stop working within a second of being deleted",
		"is good until then and not a moment longer: a trial, and a key",
	}},
	{"both POSTs need a subscription or a running trial, nothing else does", []string{
		"is good until then and not a moment longer: a trial, and a key", "a team without a subscription reads and cancels, and makes nothing",
	}},
	{"health needs no key and says ok", []string{"the site is healthy without a key"}},

	// Errors.
	{"400 VALIDATION_ERROR", []string{"creating a post refuses what is wrong and says where"}},
	{"400 TIKTOK_PRIVACY_LEVEL_UNAVAILABLE", []string{"names the levels that a private account can choose, and posts nothing"}},
	{"401 UNAUTHORIZED", []string{"API keys are needed for everything, before anything else is looked at"}},
	{"403 SUBSCRIPTION_REQUIRED", []string{"a team without a subscription reads and cancels, and makes nothing"}},
	{"404 NOT_FOUND", []string{
		"reading a post answers 404 to every id that is not one of the team's posts, read or cancelled", "bad input in an id is an id that no post has",
	}},
	{"409 POSTING_READINESS_RECONNECT_REQUIRED and POSTING_READINESS_UNAVAILABLE", []string{
		"creating a post posts to no connection that cannot be posted to",
	}},
	{"409 CONFLICT", []string{"cancelling a post cancels what has not begun, once"}},
	{"500 INTERNAL_ERROR", []string{"trouble on this side is INTERNAL_ERROR, says nothing of its cause, and makes nothing"}},
	{"403 of the store for another type", []string{"answers an id and an address that takes exactly the stated type for 15 minutes"}},

	// Limits that no rule above names.
	{"images of a post: X 4, Instagram 10, Facebook 10, Threads 20, TikTok 35, the strictest of all", []string{
		"4 images to X", "5 images to X", "10 images to Instagram", "11 images to Instagram", "10 images to Facebook", "11 images to Facebook",
		"20 images to Threads", "21 images to Threads", "35 images to TikTok", "images beyond the strictest of several",
	}},
	{"hashtags and mentions on Instagram, titles on YouTube", []string{
		"31 hashtags on Instagram", "21 mentions on Instagram", "a title of 101 characters", "a title with brackets",
	}},
	{"media of a card on X: 4 images of 5 MB, or one video of 512 MB", []string{
		"a tree card with 4 images on X", "a card with 5 images on X", "a card with two videos on X", "a card that mixes on X", "an image over 5 MB on X",
		"a video over 512 MB on X",
	}},
	{"media of a card on Threads: 20, images of 8 MB, videos of 1 GB, mixed", []string{
		"a tree card with 20 media on Threads, mixed", "21 media on Threads", "an image over 8 MB on Threads",
	}},

	{"the starter plan's 30 posts to X a month", []string{
		"The starter plan's 30 posts to X a month hold whatever races, over two replicas",
		"The starter plan's 30 posts to X a month come back with a cancel", "count a tree by its cards, and each account",
		"begin anew with the month, by the clock of UTC",
	}},
	{"the starter plan's 10 accounts", []string{
		"The starter plan's 10 accounts are the oldest ones; posts to others are refused, and others are not listed",
	}},
	{"five pending drafts on TikTok within 24 hours", []string{
		"TikTok's five pending drafts a day hold for each account, whatever the plan and whatever races",
	}},

	// The description, and the extensions.
	{"OpenAPI 3.0.3, version 1.0.0, as YAML and JSON, with six operations", []string{"the site serves its description, twice the same"}},
	{"extension: Idempotency-Key on both POSTs", []string{
		"An Idempotency-Key answers a repeated request with the post as it reads now", "holds over replicas and restarts, for posts and for uploads",
	}},
	{"extension: 429 RATE_LIMITED, Retry-After and RateLimit headers", []string{"A limit of requests holds for each API key, and says when to come back"}},
	{"extension: a page for people", []string{"describes itself to people, without a key, a script or another site"}},
}

var _ = ReportAfterSuite("every row of the contract is held by a spec that there is", func(report Report) {
	whole, last := map[string]bool{}, map[string]int{}
	for i := range report.SpecReports {
		spec := &report.SpecReports[i]
		whole[spec.FullText()] = true
		for n := range spec.ContainerHierarchyTexts {
			whole[strings.Join(spec.ContainerHierarchyTexts[:n+1], " ")] = true
		}
		last[spec.LeafNodeText]++
	}
	for _, r := range contractRows {
		for _, words := range r.specs {
			Expect(whole[words] || last[words] == 1).To(BeTrue(), "the row %q of the contract names a spec %q, which there is not, or several", r.row, words)
		}
	}
})
