// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram simulates the Instagram API for professional accounts: containers of pictures, reels and
// carousels, their publication, the account's posts, its remaining quota, and long-lived tokens.
//
// There are two login flows, each with its own host, permissions and tokens. The platform's base path is the host
// graph.instagram.com, for Instagram Login. The paths below graph.facebook.com and rupload.facebook.com are for
// Facebook Login, where the account is reached through its linked Page, and bytes can be uploaded instead of fetched.
// An account that the control API creates with login facebook has a token of this kind. It represents the Page and
// the person who manages it.
//
// Pictures are fetched and checked during the creation of the container. The download of a video starts then too, but
// as on the platform, errors appear in the container's status after processing.
package instagram
