// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox simulates social platforms over HTTP, so that Herald can be run and tested without one real account.
//
// It imports nothing of Herald: the simulators are written from the platforms' documentation, so that a misreading by a
// publisher shows. The same server stands behind the local run, the tests and the benchmarks.
//
// Clients of others can be run against it with nothing but the address changed: what the platforms overlook or take in more
// than one form, the simulators do as well. Where a platform overlooks a parameter or field that it does not know, a Server
// refuses it unless Options.Lenient is set, so that Herald's own tests see a misspelt one; the program herald-sandbox is
// lenient, unless it is started with --strict. Each package names the sources of what it answers.
//
//	/x/…                      X's API v2: accounts, media, and posts of text, images or a video
//	/threads/…                the Threads API: accounts and posts of text, images, videos and carousels
//	/facebook/…               the Graph API of Facebook Pages: Pages, posts of text and photos
//	/instagram/…              the Instagram API: accounts, pictures, reels and carousels; see below for its hosts
//	/tiktok/…                 TikTok's API: accounts, and posts of videos and photos; the host of uploads is /tiktok/video/
//	/youtube/…                the YouTube Data API: channels and videos; Google's token endpoint is /youtube/token
//	/                         pages for people: the accounts, a feed for each
//	/_control/…               what tests look at and turn, see below
//
// Below a platform's name follows the path that the platform itself has on its host, and beside it lie the public addresses
// of posts and accounts. Instagram has three hosts: /instagram stands for graph.instagram.com, where Instagram Login is used,
// /instagram/graph.facebook.com and /instagram/rupload.facebook.com for those of Facebook Login.
//
// Connect flows begin at a page of consent, where a person chooses one of the accounts, and end at a token endpoint. Any
// client is known, and any secret is right:
//
//	X                  /x/i/oauth2/authorize; POST /x/2/oauth2/token
//	Threads            /threads/oauth/authorize; POST /threads/oauth/access_token, then GET /threads/access_token
//	Instagram          /instagram/oauth/authorize; POST /instagram/oauth/access_token, then GET /instagram/access_token
//	Facebook           /facebook/{version}/dialog/oauth; /facebook/{version}/oauth/access_token, then me/accounts
//	… for Instagram    the same below /instagram/graph.facebook.com
//	TikTok             /tiktok/v2/auth/authorize/; POST /tiktok/v2/oauth/token/
//	Google             /youtube/o/oauth2/v2/auth; POST /youtube/token
//
// The control API speaks JSON. Lists and objects come as {"data": …}, errors as {"error": {"code", "message"}}.
//
//	GET    /_control/posts?platform=&account=      what is posted, in order of creation
//	GET    /_control/calls                         how many requests arrived, by platform and operation
//	GET    /_control/faults                        those that wait, with the times that are left of each
//	POST   /_control/faults                        let the next requests go wrong
//	DELETE /_control/faults
//	GET    /_control/accounts/{platform}/{id}      an account with its tokens
//	PUT    /_control/accounts/{platform}/{id}      change it, or create it when it does not exist
//	POST   /_control/reset                         forget posts, settings, faults and counters; accounts and tokens stay
//
// An account is created by the first PUT. Beside the settings, PUT takes username and, for an account on Instagram that is
// reached through its Facebook Page, login: "facebook" (both only then), and display_name. Every
// answer has access_token, refresh_token (empty where the platform has none) and expires_at (null where tokens do not
// end), so that a test can connect the account; tokens that have ended for good are replaced. A quota is a number of posts
// in any 24 hours, null means none. A token_ttl_s holds for tokens given from then on, and shortens those that are out;
// what a platform measures by a token's life, such as how old it must be to be renewed, shrinks with it. listing_lag_ms
// is how much later than its creation a post is listed (null: the platform's own time, which is 3 s on TikTok, whose
// moderation it is, and nothing elsewhere). processing_ms is
// how long the platform works on what is handed to it before it can be published (null: the platform's own time), and a
// processing_error, as the platform names it, is what that work ends with. pages are the ids of other Pages that the same
// person manages on Facebook. The rates and limits that the platforms document
// beside the number of posts are not simulated: they would be in the way of tests.
//
// Posts come with a detail: the options that a platform took with them, in the words of its simulator.
//
// A fault names a platform, an operation (below) and a kind. It is for the next request, or for as many as times says; for those of
// one account if account names it; and, with percent, for that share of the requests, drawn at random from seed. The kinds:
//
//	status          answers status (500) instead of acting
//	drop_before     closes the connection without acting; drop_after acts first
//	error_after     acts, then answers status (500) in the platform's general words
//	publishes_and_refuses
//	                publishes, then refuses: with refusal, one of rate_limit, spam, permission and invalid, in the platform's words for
//	                it; or with status, and with body and headers if the platform's general words for the status are not meant. A
//	                body that is a JSON string is answered as text. With body or headers, the platform adds no headers of its own. A
//	                request that the platform itself refuses gets its own answer
//	delay           waits for delay_ms before acting
//	rate_limit      answers that there were too many requests, and to come back in retry_after_s (60)
//	token_expired   answers as to a token whose time is over; token_revoked as to one that was taken back
//	stale_list      lets listings lag by delay_ms
//
// A request meets at most one fault that answers or closes the connection, one delay and one stale list, each time the
// one that has waited longest. `*` matches every operation, with three exceptions: stale_list matches listings only,
// publishes_and_refuses matches publish only, and token_expired does not match refresh_token. What is which operation, by platform:
//
//	identity       X /2/users/me; Threads, Instagram and Facebook /me; TikTok /v2/user/info/ and creator_info; YouTube channels
//	refresh_token  the token endpoint; Threads and Instagram /refresh_access_token; Facebook has none
//	upload         X /2/media/upload with initialize, append and finalize;
//	               Instagram /ig-api-upload/{version}/{container}; Facebook /{id}/photos with published=false;
//	               TikTok's chunks but the last; YouTube's chunks but the last, and thumbnails
//	create         Threads /{id}/threads; Instagram /{id}/media; TikTok …/init/ of an upload; YouTube's start of a session,
//	               where a status of 429 says that the client's project has used up its uploads of the day
//	publish        X /2/tweets; Threads /{id}/threads_publish; Instagram /{id}/media_publish; Facebook /{id}/feed and /{id}/photos;
//	               TikTok the last chunk, and …/init/ of photos and of what TikTok fetches; YouTube the last chunk,
//	               and a video in one request
//	status         X /2/media/upload?command=STATUS; Threads and Instagram /{container}; Facebook /{post} and /{photo};
//	               TikTok /v2/post/publish/status/fetch/; YouTube /videos, and what a session has
//	list           X /2/users/{id}/tweets; Threads /{id}/threads and replies; Instagram /{id}/media; Facebook
//	               /{id}/published_posts and feed; TikTok /v2/video/list/; YouTube /playlistItems
//
// Reading and deleting one post, exchanging codes and other calls have no name in faults, and `*` matches them.
//
// Accounts, tokens, containers and posts survive a kill when there is a state folder (package state). Faults, counters and
// authorization codes live in memory: a restart forgets them.
//
// A platform is one package below this one, and one line each in newPlatforms and profiles.
package sandbox
