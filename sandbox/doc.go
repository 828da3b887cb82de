// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox simulates social platforms over HTTP, so that Herald can be run and tested without one real account.
//
// It imports nothing of Herald: the simulators are written from the platforms' documentation, so that a misreading by a
// publisher shows. The same server stands behind the local run, the tests and the benchmarks.
//
//	/x/…                      X's API v2 (text posts), and its public addresses of posts
//	/                         pages for people: the accounts, a feed for each
//	/_control/…               what tests look at and turn, see below
//
// The control API speaks JSON. Lists and objects come as {"data": …}, errors as {"error": {"code", "message"}}.
//
//	GET    /_control/posts?platform=&account=      what is posted, in order of creation
//	GET    /_control/calls                         how many requests arrived, by platform and operation
//	POST   /_control/faults                        let the next requests go wrong
//	DELETE /_control/faults
//	GET    /_control/accounts/{platform}/{id}      an account with its tokens
//	PUT    /_control/accounts/{platform}/{id}      change it, or create it when it does not exist
//	POST   /_control/reset                         forget posts, settings, faults and counters; accounts and tokens stay
//
// An account is created by the first PUT. Beside the settings, PUT takes username (only then) and display_name. Every
// answer has access_token, refresh_token and expires_at, so that a test can connect the account. A quota is a number of
// posts in any 24 hours, null means none. A token_ttl_s holds for tokens given from then on, and shortens those that are
// out.
//
// A request meets at most one fault that answers or closes the connection, one delay and one stale list, each time the
// one that has waited longest. `*` matches every operation, with two exceptions: stale_list matches listings only, and
// token_expired only requests that are made with an access token.
//
// Accounts, tokens and posts survive a kill when there is a state folder (package state). Faults, counters and
// authorization codes live in memory: a restart forgets them.
//
// A platform is one package below this one, and one line in newPlatforms and DemoAccounts.
package sandbox
