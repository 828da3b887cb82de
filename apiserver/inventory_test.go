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
	{"bodies are JSON with snake_case names; unknown fields are ignored", []string{
		"a body of exactly the limit",
	}},
	{"times are ISO 8601 in UTC, with milliseconds", []string{"stores a scheduled post as the contract and the manager require", "listing connections"}},
	{"a single resource comes as data, a list as data, and a list of posts with pagination", []string{
		"listing connections", "listing posts sorts, filters and pages",
	}},
	{"every error has a code and a message", []string{"bad input", "the site rejects unknown paths in the shape of every error"}},
	{"accounts are connected, and drafts published, outside the API", []string{"the site rejects unknown paths in the shape of every error"}},
	{"connections, posts and media belong to the key's team", []string{
		"What belongs to another team", "is rejected before it is uploaded, after it is deleted, and if it belongs to another team",
	}},

	// Connections.
	{"a connection has id, platform, account_name, icon_url and connected_at; account_name and icon_url may be null", []string{"listing connections"}},
	{"active connections are listed, optionally by platform", []string{"listing connections"}},
	{"an unknown platform in a query is rejected", []string{
		"listing connections", "bad input in the query of a list is rejected with its path a list of platforms",
	}},

	// Uploads.
	{"an upload requires a type, a size of at least 1 and a name", []string{"asking for an upload URL rejects files that could not be posted"}},
	{"an upload is answered with an id, a signed URL and the name", []string{
		"returns an id and a URL that accepts only the declared type, for 15 minutes",
	}},
	{"mp4, mov, jpeg, png and webp are accepted, by type and by extension", []string{
		"asking for an upload URL accepts each type up to its limit",
		"asking for an upload URL rejects files that could not be posted another extension",
		"asking for an upload URL rejects files that could not be posted a GIF",
	}},
	{"a video has up to 1 GB, an image up to 20 MB", []string{"a video over 1 GB", "an image over 20 MB", "mp4, 1 GB", "jpg, 20 MB"}},
	{"the URL is valid for 15 minutes and one type", []string{
		"returns an id and a URL that accepts only the declared type, for 15 minutes",
	}},

	// Lists.
	{"page is at least 1, limit from 1 to 100, default 20; other values are clamped", []string{
		"listing posts sorts, filters and pages", "bad input in the query of a list that has a defined meaning is accepted",
	}},
	{"lists filter by each status and by platform", []string{
		"lists contain each state under its own name, target by target", "listing posts sorts, filters and pages",
	}},
	{"a summary has a title: the YouTube title, or 30 characters of the caption", []string{
		"listing posts sorts, filters and pages", "is returned for a video that some platforms published",
		"an empty draft has no title and is dated by its creation",
	}},
	{"a summary has one platform with its status for each target", []string{"lists contain each state under its own name, target by target"}},
	{"lists omit cancelled posts", []string{"listing posts sorts, filters and pages", "cancelling a post cancels a post whose delivery has not started, once"}},
	{"an invalid query is rejected", []string{"bad input in the query of a list is rejected with its path"}},

	// Posts: the request.
	{"category selects one of four shapes", []string{"an unknown category", "can only be sent to its category's platforms; drafts are checked for trees only"}},
	{"targets has at least one item", []string{"creating a post rejects errors with their path no targets"}},
	{"scheduled_at may be omitted or null, and means immediately", []string{"answers processing for an immediate post"}},
	{"draft is false when it is omitted", []string{
		"answers processing for an immediate post", "stores a draft without a caption and without requests to platforms",
	}},
	{"a field of another type is rejected", []string{"of a wrong type is rejected with its path, in every field of every body"}},
	{"a video has media_id and may have thumbnail_time; drafts need the first too", []string{
		"a video without media_id", "a draft without media_id", "a thumbnail within the video", "a thumbnail time after the end",
	}},
	{"an image has 1 to 35 media_ids; drafts need them too", []string{
		"posts with media refuses no images", "posts with media refuses 36 images", "a draft without media_ids",
	}},
	{"connection_id is not empty and names a connection of the team", []string{
		"an unknown connection", "of a wrong type is rejected with its path, in every field of every body",
	}},
	{"is_ai_generated and tiktok_allow_comment only affect TikTok", []string{
		"a label and no comments", "accepts other platforms' options, without effect",
	}},
	{"a tree's targets only have connection_id; five fields are rejected, others ignored", []string{
		"creating a tree rejects the fields of other targets", "options that trees do not have",
		"as a tree ignores other targets' fields that the contract does not name",
	}},
	{"a card's caption may be omitted, null or empty, its media_ids omitted", []string{"a draft with an empty card"}},

	// Posts: the eleven rules.
	{"rule 1: each category has its platforms, for drafts too", []string{"can only be sent to its category's platforms; drafts are checked for trees only"}},
	{"rule 2: a post with a future time is scheduled", []string{
		"stores a scheduled post as the contract and the manager require", "creating a post rejects errors with their path a past time",
	}},
	{"rule 3: a draft has no time", []string{"under the contract a post of any category is never both a draft and scheduled"}},
	{"rule 4: captions may be omitted in drafts only", []string{
		"under the contract a post of every category with captions requires one, unless it is a draft", "a draft to YouTube without a title",
	}},
	{"rule 5: captions have at most their platform's maximum length", []string{
		"under the contract a post has captions of at most its platform's maximum length", "TikTok's 2,200 characters", "2,201 characters on TikTok",
		"Instagram's 2,200 characters", "2,201 characters on Instagram", "YouTube's description of 5,000 bytes", "a description of 5,001 bytes",
	}},
	{"limits: Facebook accepts captions of any length that fit into one object", []string{
		"a large post is accepted if it fits, including all later records",
		"a large post is rejected before any reservation, if its outcomes would not fit into the object",
	}},
	{"rule 6: YouTube needs a title", []string{"posts with media refuses no title on YouTube", "posts with media refuses an empty title"}},
	{"rule 7: a privacy level that the account does not offer has its own error code", []string{
		"lists the levels that a private account offers, and does not post",
	}},
	{"rule 8: music for images only", []string{"music on images", "music on a video", "creating a post rejects errors with their path music"}},
	{"rule 8: duets and stitches for videos only", []string{
		"a duet and a stitch on a video", "a duet on images", "a stitch on images", "creating a post rejects errors with their path a duet",
		"creating a post rejects errors with their path a stitch",
	}},
	{"rule 8: an inbox draft has neither music nor a privacy level", []string{
		"an inbox draft with music", "an inbox draft with a privacy level", "an inbox draft of a video",
	}},
	{"rule 9: connections that have to be reconnected", []string{
		"creating a post does not post to an unusable connection expired",
		"of any category requires ready connections, after all other rules",
	}},
	{"rule 9: connections whose state cannot be determined", []string{
		"creating a post does not post to an unusable connection platform down",
		"of any category requires ready connections, after all other rules",
	}},
	{"rule 9: drafts are not checked", []string{"stores a draft without a caption and without requests to platforms"}},
	{"rule 10: a tree can be sent to X and Threads, once per connection", []string{
		"creating a tree refuses the same connection twice",
		"can only be sent to its category's platforms; drafts are checked for trees only",
	}},
	{"rule 10: a tree has at least two cards, a draft one", []string{
		"creating a tree refuses one card", "a scheduled tree of one card", "creating a tree accepts a draft of one card",
	}},
	{"rule 10: no cards, or cards that are not a list", []string{"a tree without cards, even as a draft", "tree_cards that are not a list"}},
	{"rule 10: a card has a text or media, unless the tree is a draft", []string{
		"a card without text and media", "a draft with an empty card", "a tree card with media only",
	}},
	{"rule 10: types and the team's media are checked in drafts too", []string{
		"a caption that is not a string", "media_ids that are not a list", "a missing media file", "another team's file on a card, also of a draft",
	}},
	{"rule 10: lengths, counts and sizes are not checked in drafts", []string{
		"a draft with a card that is too long", "a draft of a tree with too many media", "a draft of a tree whose image is too large",
		"a draft of a tree with mixed media on X",
	}},
	{"rule 11: a card has at most its platforms' smallest maximum length", []string{
		"under the contract a post as a tree has cards of at most its platforms' smallest maximum length",
	}},

	// Posts: the response.
	{"a post is returned as it was created, with all fields", []string{
		"returns the post as a read does, and lists it immediately",
		"is returned for a video that some platforms published", "is returned for scheduled images", "is returned for a tree that one platform published completely",
		"is returned for a draft of a tree, also after its cancellation", "is returned for a draft of a video without a title or a caption",
	}},
	{"media_ids are empty for posts that were not created through the API", []string{
		"a post from elsewhere has no media, and cannot be cancelled after its time",
	}},
	{"can_cancel is true for drafts, and for scheduled posts before their time", []string{
		"lists contain each state under its own name, target by target",
		"a post from elsewhere has no media, and cannot be cancelled after its time",
	}},
	{"each platform has its status, URL and error", []string{
		"is returned for a video that some platforms published", "lists contain each state under its own name, target by target",
	}},
	{"a deleted connection leaves connection_id and account_name empty", []string{"is returned for a video that some platforms published"}},

	// States.
	{"a draft is saved and never delivered", []string{"stores a draft without a caption and without requests to platforms"}},
	{"drafts and scheduled posts can be cancelled", []string{
		"cancelling a post cancels a post whose delivery has not started, once a draft", "cancelling a post cancels a post whose delivery has not started, once a scheduled post",
		"a post that is rejected after its creation keeps its state, reports the reason in the resource, and can be cancelled",
	}},
	{"processing, finished, cancelled or immediate posts cannot be cancelled", []string{
		"cancelling a post rejects an immediate post", "rejects a scheduled post once its delivery has started, and a finished one",
		"never cancels a post that is claimed concurrently",
		"a post from elsewhere has no media, and cannot be cancelled after its time",
	}},

	// Keys and subscriptions.
	{"every call requires a key, which is checked first", []string{"API keys are required for everything, and checked first"}},
	{"a revoked, expired or deleted key is invalid", []string{
		"API keys become invalid within a second after their revocation", "API keys become invalid within a second after their deletion",
		"is exact, for a trial and for a key",
	}},
	{"only the two POSTs require a subscription or a running trial", []string{
		"is exact, for a trial and for a key", "a team without a subscription can read and cancel, but not create",
	}},
	{"health returns ok without a key", []string{"the site is healthy without a key"}},

	// Errors.
	{"400 VALIDATION_ERROR", []string{"creating a post rejects errors with their path"}},
	{"400 TIKTOK_PRIVACY_LEVEL_UNAVAILABLE", []string{"lists the levels that a private account offers, and does not post"}},
	{"401 UNAUTHORIZED", []string{"API keys are required for everything, and checked first"}},
	{"403 SUBSCRIPTION_REQUIRED", []string{"a team without a subscription can read and cancel, but not create"}},
	{"404 NOT_FOUND", []string{
		"reading a post answers 404 for all ids but the team's posts, for reads and cancellations", "bad input in an id is an unknown id",
	}},
	{"409 POSTING_READINESS_RECONNECT_REQUIRED and POSTING_READINESS_UNAVAILABLE", []string{
		"creating a post does not post to an unusable connection",
	}},
	{"409 CONFLICT", []string{"cancelling a post cancels a post whose delivery has not started, once"}},
	{"500 INTERNAL_ERROR", []string{"Herald's own errors are INTERNAL_ERROR, without their cause, and without effects"}},
	{"the store's 403 for another type", []string{"returns an id and a URL that accepts only the declared type, for 15 minutes"}},

	// Limits that no rule above names.
	{"images of a post: X 4, Instagram 10, Facebook 10, Threads 20, TikTok 35, the strictest of all", []string{
		"4 images to X", "5 images to X", "10 images to Instagram", "11 images to Instagram", "10 images to Facebook", "11 images to Facebook",
		"20 images to Threads", "21 images to Threads", "35 images to TikTok", "images beyond the strictest of several",
	}},
	{"hashtags and mentions on Instagram, titles on YouTube", []string{
		"31 hashtags on Instagram", "21 mentions on Instagram", "a title of 101 characters", "a title with brackets",
	}},
	{"media of a card on X: 4 images of 5 MB, or one video of 512 MB", []string{
		"a tree card with 4 images on X", "a card with 5 images on X", "a card with two videos on X", "a card with mixed media on X", "an image over 5 MB on X",
		"a video over 512 MB on X",
	}},
	{"media of a card on Threads: 20, images of 8 MB, videos of 1 GB, mixed", []string{
		"a tree card with 20 media on Threads, mixed", "21 media on Threads", "an image over 8 MB on Threads",
	}},

	{"the starter plan's 30 posts to X a month", []string{
		"The starter plan's 30 posts to X a month hold under races between two replicas",
		"The starter plan's 30 posts to X a month are released by a cancellation", "count a tree's cards, for each account",
		"restart with each month in UTC",
	}},
	{"the starter plan's 10 accounts", []string{
		"The starter plan's 10 accounts are the oldest ones; posts to others are rejected, and others are not listed",
	}},
	{"five pending drafts on TikTok within 24 hours", []string{
		"TikTok's five pending drafts a day hold for each account, whatever the plan, and under races",
	}},

	// The description, and the extensions.
	{"OpenAPI 3.0.3, version 1.0.0, as YAML and JSON, with six operations", []string{"the site serves identical OpenAPI documents"}},
	{"extension: Idempotency-Key on both POSTs", []string{
		"An Idempotency-Key answers a repeated request with the post's present state", "holds across replicas and restarts, for posts and for uploads",
	}},
	{"extension: 429 RATE_LIMITED, Retry-After and RateLimit headers", []string{"A rate limit applies to each API key, and returns Retry-After"}},
	{"extension: a page for people", []string{"serves its documentation as a page, without a key, scripts or other sites"}},
}

var _ = ReportAfterSuite("each row of the contract has an existing spec", func(report Report) {
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
			Expect(whole[words] || last[words] == 1).To(BeTrue(), "the contract's row %q names the spec %q, which must exist exactly once", r.row, words)
		}
	}
})
