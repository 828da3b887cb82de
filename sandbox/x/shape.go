// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// The fields that can be requested, from X's data dictionary and expansions pages (the names with tweet) and from its
// OpenAPI 2.167 of August 2026 (the names with post). The service accepts the old names, and X's own SDK 0.6.6 sends
// the new ones; the simulator accepts both. Like X, it omits fields without a value from the response.
var (
	postFields = []string{
		"article", "article_title", "attachments", "author_id", "card_uri", "community_id", "context_annotations", "conversation_id",
		"created_at", "display_text_range", "edit_controls", "edit_history_post_ids", "edit_history_tweet_ids", "entities", "geo", "id",
		"in_reply_to_user_id", "lang", "matched_media_notes", "media_metadata", "non_public_metrics", "note_post",
		"note_request_suggestions", "note_tweet", "organic_metrics", "paid_partnership", "possibly_sensitive", "promoted_metrics",
		"public_metrics", "referenced_posts", "referenced_tweets", "reply_settings", "scopes", "source", "suggested_source_links",
		"suggested_source_links_with_counts", "text", "username", "withheld",
	}
	postExpansions = []string{
		"article.cover_media", "article.media_entities", "attachments.media_keys", "attachments.media_source_tweet",
		"attachments.poll_ids", "author_id", "edit_history_post_ids", "edit_history_tweet_ids", "entities.mentions.username",
		"entities.note.mentions.username", "geo.place_id", "in_reply_to_user_id", "referenced_posts", "referenced_posts.id",
		"referenced_posts.id.attachments.media_keys", "referenced_posts.id.author_id", "referenced_tweets.id",
		"referenced_tweets.id.attachments.media_keys", "referenced_tweets.id.author_id", "username",
	}
	userFields = []string{
		"affiliation", "confirmed_email", "connection_status", "created_at", "description", "entities", "id", "is_identity_verified",
		"location", "most_recent_post_id", "most_recent_tweet_id", "name", "parody", "pinned_post_id", "pinned_tweet_id",
		"profile_banner_url", "profile_image_url", "protected", "public_metrics", "receives_your_dm", "subscribes_to_you",
		"subscription", "subscription_type", "url", "username", "verified", "verified_followers_count", "verified_type", "withheld",
	}
	userExpansions = []string{
		"affiliation", "affiliation.user_id", "most_recent_post_id", "most_recent_tweet_id", "pinned_post_id", "pinned_tweet_id",
	}
	mediaFields = []string{
		"alt_text", "duration_ms", "height", "media_key", "non_public_metrics", "organic_metrics", "preview_image_url",
		"promoted_metrics", "public_metrics", "type", "url", "variants", "width",
	}
	pollFields  = []string{"duration_minutes", "end_datetime", "id", "options", "voting_status"}
	placeFields = []string{"contained_within", "country", "country_code", "full_name", "geo", "id", "name", "place_type"}
)

// shape is the requested form of posts.
type shape struct {
	// fields are the fields of a post requested beyond the default ones; userFields and mediaFields are those of the
	// objects that it references.
	fields, userFields, mediaFields []string
	expansions                      []string
}

// shape reads the parameters that control the form of posts.
func (q *query) shape() shape {
	out := shape{
		fields:     append(q.list("tweet.fields", postFields), q.list("post.fields", postFields)...),
		userFields: q.list("user.fields", userFields), mediaFields: q.list("media.fields", mediaFields),
		expansions: q.list("expansions", postExpansions),
	}
	q.list("poll.fields", pollFields)
	q.list("place.fields", placeFields)
	for _, expansion := range out.expansions {
		field, _, _ := strings.Cut(expansion, ".") // an expanded field is included as well
		out.fields = append(out.fields, field)
	}
	return out
}

// includes returns the objects that the posts' expansions refer to: nil if none are requested, empty if nothing is
// referenced.
func (p *Platform) includes(r *faults.Request, posts []state.Post, asked shape) map[string][]map[string]any {
	if asked.expansions == nil {
		return nil
	}
	out := includes{}
	for _, post := range posts {
		parent, isReply := p.Store.Post(Name, post.InReplyTo)
		for _, expansion := range asked.expansions {
			switch expansion {
			case "author_id", "username":
				out.add("users", "id", p.includedUser(r, post.AccountID, asked.userFields))
			case "attachments.media_keys":
				for i, a := range detailOf(post).Media {
					out.add("media", "media_key", p.includedMedia(r, a, post.Media[i], asked.mediaFields))
				}
			}
			if !isReply {
				continue
			}
			switch expansion {
			case "in_reply_to_user_id", "referenced_tweets.id.author_id", "referenced_posts.id.author_id":
				out.add("users", "id", p.includedUser(r, parent.AccountID, asked.userFields))
			case "referenced_tweets.id":
				out.add("tweets", "id", p.tweetObject(parent, asked.fields))
			case "referenced_posts", "referenced_posts.id":
				out.add("posts", "id", p.tweetObject(parent, asked.fields))
			}
		}
	}
	return out
}

// includes are objects by kind.
type includes map[string][]map[string]any

// add adds an object unless there is already one with the same key.
func (i includes) add(kind, key string, object map[string]any) {
	known := func(other map[string]any) bool { return other[key] == object[key] }
	if !slices.ContainsFunc(i[kind], known) {
		i[kind] = append(i[kind], object)
	}
}

func (p *Platform) includedUser(r *faults.Request, id string, fields []string) map[string]any {
	account, _ := p.Store.Account(state.Key{Platform: Name, ID: id})
	return p.userObject(r, account, fields)
}

// includedMedia renders one of a post's media. Only images have a URL.
func (p *Platform) includedMedia(r *faults.Request, of attachment, file state.Media, fields []string) map[string]any {
	blob, _ := p.Blobs.Get(file.SHA256) // a missing file has no size
	all := map[string]any{"width": blob.Width, "height": blob.Height}
	if of.Kind == kindPhoto {
		all["url"] = p.File(r.Request, simulator.MediaOf(blob))
	} else {
		all["duration_ms"] = blob.Duration.Milliseconds()
	}
	if file.AltText != "" {
		all["alt_text"] = file.AltText
	}
	out := map[string]any{"media_key": of.Key, "type": of.Kind}
	for _, field := range fields {
		if value, found := all[field]; found {
			out[field] = value
		}
	}
	return out
}
