// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram simulates the Instagram API for professional accounts: containers of pictures, reels and carousels,
// their publication, the account's posts, what is left of its quota, and long-lived tokens.
//
// There are two ways to log in, each with a host, permissions and tokens of its own. The paths of the platform itself are
// those of graph.instagram.com, for Instagram Login. Below graph.facebook.com and rupload.facebook.com lie those of
// Facebook Login, where the account is reached through the Page that it is linked to, and bytes may be uploaded instead of
// being fetched. An account that the control API makes with login facebook has a token of this kind, which stands for the
// Page and for the person who manages it.
//
// Pictures are fetched and judged while the container is made. Videos are fetched then as well, but what is wrong with one
// shows as the platform shows it, in the container's status once it has been worked on.
//
// It is written from the platform's documentation. Stories and comments are not simulated, nor are the options of a post
// beside its caption, media and thumbnail: asking for one is refused, and overlooked by a lenient sandbox. The items of a carousel can be read through it only.
package instagram
