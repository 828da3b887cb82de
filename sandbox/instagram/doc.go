// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram simulates the Instagram API for professional accounts: containers of images, reels and carousels, their publication,
// the account's posts, its remaining quota, and long-lived tokens.
//
// There are two login flows, each with its own host, permissions and tokens. The platform's base path is the host graph.instagram.com, for
// Instagram Login. The paths below graph.facebook.com and rupload.facebook.com are for Facebook Login, where the account is reached through
// its linked Page, and bytes can be uploaded instead of fetched. An account created by the control API with login facebook has a token of
// this kind, which represents the Page and its manager.
//
// Images are fetched and checked during container creation. A video's download starts then too, but as on the platform, errors appear in
// the container's status after processing.
package instagram
