// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox simulates social platforms over HTTP, so that Herald can run and be tested without real accounts.
// It imports no other package of Herald: the simulators follow the platforms' documentation, so a publisher that
// misreads it fails here. The local run, the tests and the benchmarks use the same server.
//
// Third-party clients run against it with only the address changed, because the simulators ignore or accept the same
// variants as the platforms. Where a platform ignores an unknown parameter or field, a Server rejects it unless
// Options.Lenient is set, so that Herald's own tests catch misspelled ones. The program herald-sandbox is lenient
// unless it runs with --strict. The documentation of each package names its sources.
//
//	/x/…                      X's API v2: accounts, media, and posts of text, images or a video
//	/threads/…                the Threads API: accounts and posts of text, images, videos and carousels
//	/facebook/…               the Graph API of Facebook Pages: Pages, posts of text and photos
//	/instagram/…              the Instagram API: accounts, pictures, reels and carousels; see below for its hosts
//	/tiktok/…                 TikTok's API: accounts, and posts of videos and photos; the host of uploads is /tiktok/video/
//	/mastodon/…               the API of a Mastodon server: accounts, and posts of text, images or a video
//	/bluesky/…                the API of a Bluesky account server: app password sessions, and posts of text, images or a video
//	/youtube/…                the YouTube Data API: channels and videos; Google's token endpoint is /youtube/token
//	/                         pages for people: the accounts, a feed for each
//	/_control/…               the control API for tests, see below
//
// The path after a platform's name is the path on the platform's own host. The public addresses of posts and accounts
// share the prefix. Instagram has three hosts: /instagram is graph.instagram.com, for Instagram Login, and
// /instagram/graph.facebook.com and /instagram/rupload.facebook.com are the hosts of Facebook Login.
//
// A connect flow starts at a consent page, where a person chooses one of the accounts, and ends at a token endpoint.
// Every client id and every secret is accepted, except on Mastodon, where clients register:
//
//	X                  /x/i/oauth2/authorize; POST /x/2/oauth2/token
//	Threads            /threads/oauth/authorize; POST /threads/oauth/access_token, then GET /threads/access_token
//	Instagram          /instagram/oauth/authorize; POST /instagram/oauth/access_token, then GET /instagram/access_token
//	Facebook           /facebook/{version}/dialog/oauth; /facebook/{version}/oauth/access_token, then me/accounts
//	… for Instagram    the same below /instagram/graph.facebook.com
//	TikTok             /tiktok/v2/auth/authorize/; POST /tiktok/v2/oauth/token/
//	Google             /youtube/o/oauth2/v2/auth; POST /youtube/token
//	Mastodon           POST /mastodon/api/v1/apps, then /mastodon/oauth/authorize; POST /mastodon/oauth/token and /mastodon/oauth/revoke
//
// The control API uses JSON. Lists and objects have the form {"data": …}, errors {"error": {"code", "message"}}.
//
//	GET    /_control/posts?platform=&account=      posts, in order of creation
//	GET    /_control/calls                         request counts, by platform and operation
//	GET    /_control/faults                        pending faults, with the remaining times of each
//	POST   /_control/faults                        add a fault for the next requests
//	DELETE /_control/faults
//	GET    /_control/accounts/{platform}/{id}      an account with its tokens
//	PUT    /_control/accounts/{platform}/{id}      change an account, or create it if it does not exist
//	POST   /_control/reset                         remove posts, settings, faults and counters; accounts and tokens stay
//
// The first PUT creates an account. Besides the settings, PUT accepts display_name and, on creation only, username and
// login. login is "facebook" for an Instagram account that is reached through its Facebook Page. Every response has
// access_token, refresh_token (empty on platforms without refresh tokens) and expires_at (null for tokens without an
// expiry), so that a test can connect the account; PUT replaces tokens that have expired for good.
//
// A quota is a number of posts in any 24 hours; null means no limit. A token_ttl_s applies to new tokens and shortens
// the existing ones; limits that a platform derives from the lifetime of a token, such as its minimum age for a
// renewal, shrink with it. listing_lag_ms is the time between the creation of a post and its appearance in listings
// (null: the platform's default, which is 3 s on TikTok, for its moderation, and 0 elsewhere). processing_ms is the
// time that the platform processes an upload before it can be published (null: the platform's default).
// processing_error makes the processing fail with this error, in the platform's own naming. pages are the ids of other
// Facebook Pages that the same person manages. The rate limits and quotas that the platforms document, other than the
// number of posts, are not simulated, because tests would reach them.
//
// A post has a detail: the options that the platform accepted with it, in the format of its simulator.
//
// A fault names a platform, an operation (below) and a kind. It applies to the next request, or to the next times
// requests. account limits it to the requests of one account. percent limits it to that share of the requests, drawn
// at random from seed. The kinds are:
//
//	status          responds with status (500) instead of acting
//	drop_before     closes the connection without acting; drop_after acts first
//	error_after     acts, then responds with status (500) and the platform's generic error
//	publishes_and_refuses
//	                publishes, then refuses: either with refusal (rate_limit, spam, permission or invalid) in the
//	                platform's wording, or with status. body and headers replace the platform's generic error for the
//	                status; a body that is a JSON string is sent as text. With body or headers, the platform adds no headers
//	                itself. A request that the platform itself refuses gets the platform's response
//	delay           waits for delay_ms before acting
//	rate_limit      responds that there were too many requests, with a retry after retry_after_s (60)
//	token_expired   responds as to an expired token; token_revoked as to a revoked one
//	stale_list      makes listings lag by delay_ms
//
// A request meets at most one fault that responds or closes the connection, one delay and one stale list, always the
// oldest one. `*` matches every operation, with three exceptions: stale_list matches only listings,
// publishes_and_refuses matches only publish, and token_expired does not match refresh_token. The operations by
// platform are:
//
//	identity       X /2/users/me; Threads, Instagram and Facebook /me; TikTok /v2/user/info/ and creator_info; YouTube channels; Mastodon verify_credentials;
//	               Bluesky com.atproto.server.getSession
//	refresh_token  the token endpoint; Threads and Instagram /refresh_access_token; Facebook, Mastodon and Bluesky have none
//	upload         X /2/media/upload with initialize, append and finalize;
//	               Instagram /ig-api-upload/{version}/{container}; Facebook /{id}/photos with published=false;
//	               TikTok's chunks but the last; YouTube's chunks but the last, and thumbnails; Mastodon POST /api/v2/media;
//	               Bluesky com.atproto.repo.uploadBlob
//	metadata       X /2/media/metadata; Mastodon PUT /api/v1/media/{id}
//	create         Threads /{id}/threads; Instagram /{id}/media; TikTok …/init/ of an upload; YouTube's start of a session,
//	               where status 429 means that the client's project has used its daily upload quota
//	publish        X /2/tweets; Threads /{id}/threads_publish; Instagram /{id}/media_publish; Facebook /{id}/feed and /{id}/photos;
//	               TikTok the last chunk, and …/init/ of photos and of files that TikTok fetches; YouTube the last chunk,
//	               and a video in one request; Mastodon POST /api/v1/statuses; Bluesky com.atproto.repo.putRecord and createRecord
//	status         X /2/media/upload?command=STATUS; Threads and Instagram /{container}; Facebook /{post} and /{photo};
//	               TikTok /v2/post/publish/status/fetch/; YouTube /videos, and the progress of a session;
//	               Mastodon GET /api/v1/media/{id}; Bluesky com.atproto.repo.getRecord
//	list           X /2/users/{id}/tweets; Threads /{id}/threads and replies; Instagram /{id}/media; Facebook
//	               /{id}/published_posts and feed; TikTok /v2/video/list/; YouTube /playlistItems; Mastodon
//	               /api/v1/accounts/{id}/statuses; Bluesky com.atproto.repo.listRecords
//
// Other calls, such as reading and deleting one post or exchanging codes, have no operation name; only `*` matches
// them.
//
// Accounts, tokens, containers and posts survive a kill if there is a state folder (package state). Faults, counters
// and authorization codes are in memory: a restart loses them.
//
// A platform is one package below this one, plus one line each in newPlatforms and profiles.
package sandbox
