// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permalink parses addresses of posts as users copy them.
package permalink

import (
	"net/url"
	"slices"
	"strings"
)

// Sites are the domains of the platforms. Parse refuses an address on the site of another platform. Only the path of an
// address on an unknown host is checked, because the address of a platform is configurable.
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
)

var all = []string{X, Twitter, Threads, ThreadsOf, Instagram, Facebook, FB, FBWatch, TikTok, YouTube, YouTuBe}

// Address is the address of a page.
type Address struct {
	// Host has no "www." prefix.
	Host string
	// Parts are the segments of the path: at least one, which may be empty.
	Parts []string
	Query url.Values

	scheme, host string
}

// IsAddress reports whether the input is an address and not an id.
func IsAddress(entered string) bool { return strings.Contains(entered, "/") }

// Parse parses an address with or without its scheme, which browsers hide. It returns false for invalid input, and for
// an address on another platform's site, not listed in own.
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

// After returns the segment of the path that follows the first of the given names; "" if there is none.
func (a *Address) After(names ...string) string {
	for i, part := range a.Parts[:len(a.Parts)-1] {
		if slices.Contains(names, part) {
			return a.Parts[i+1]
		}
	}
	return ""
}

// Last returns the last segment of the path.
func (a *Address) Last() string { return a.Parts[len(a.Parts)-1] }

// URL returns the address without query parameters other than the given ones, which identify the post.
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
