// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permalink parses post addresses as users copy them.
package permalink

import (
	"net/url"
	"slices"
	"strings"
)

// Sites are the platforms' domains. Parse rejects an address on another platform's site. A platform's address is
// configurable, so on an unknown host only the path is checked.
const (
	X         = "x.com"
	Twitter   = "twitter.com"
	Threads   = "threads.com"
	ThreadsOf = "threads.net"
	Instagram = "instagram.com"
	Facebook  = "facebook.com"
	FB        = "fb.com"
	FBWatch   = "fb.watch"
	TikTok    = "tiktok.com"
	YouTube   = "youtube.com"
	YouTuBe   = "youtu.be"
	Bluesky   = "bsky.app"
)

var all = []string{X, Twitter, Threads, ThreadsOf, Instagram, Facebook, FB, FBWatch, TikTok, YouTube, YouTuBe, Bluesky}

// Address is a page's address.
type Address struct {
	// Host has no "www." prefix.
	Host string
	// Parts are the path's segments. There is at least one, which may be empty.
	Parts []string
	Query url.Values

	scheme, host string
}

// IsAddress reports whether the input is an address rather than an id.
func IsAddress(entered string) bool { return strings.Contains(entered, "/") }

// Parse parses an address, with or without the scheme, which browsers hide. It returns false for invalid input, and for
// addresses on a platform's site that own does not list.
func Parse(entered string, own ...string) (Address, bool) {
	entered = strings.TrimSpace(entered)
	if !strings.Contains(entered, "://") {
		entered = "https://" + entered
	}
	u, err := url.Parse(entered)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return Address{}, false
	}
	host := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	on := func(site string) bool { return host == site || strings.HasSuffix(host, "."+site) }
	if slices.ContainsFunc(all, on) && !slices.ContainsFunc(own, on) {
		return Address{}, false
	}
	return Address{Host: host, Parts: strings.Split(strings.Trim(u.Path, "/"), "/"), Query: u.Query(), scheme: u.Scheme, host: u.Host}, true
}

// After returns the path segment that follows the first of the given names, or "" if there is none.
func (a *Address) After(names ...string) string {
	for i, part := range a.Parts[:len(a.Parts)-1] {
		if slices.Contains(names, part) {
			return a.Parts[i+1]
		}
	}
	return ""
}

// Last returns the path's last segment.
func (a *Address) Last() string { return a.Parts[len(a.Parts)-1] }

// URL returns the address without query parameters, except for the given ones, which identify the post.
func (a *Address) URL(parameters ...string) string {
	kept := url.Values{}
	for _, name := range parameters {
		if a.Query.Has(name) {
			kept.Set(name, a.Query.Get(name))
		}
	}
	u := url.URL{Scheme: a.scheme, Host: a.host, Path: "/" + strings.Join(a.Parts, "/"), RawQuery: kept.Encode()}
	return u.String()
}
