// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// settle takes a person's word on what became of a target.
func (s *Site) settle(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	target, err := strconv.Atoi(v.PostForm.Get("target"))
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say which account it is about"}
	}
	id := v.PathValue("id")
	verdict := bridge.Verdict{}
	switch v.PostForm.Get("verdict") {
	case "posted":
		verdict.Posted = true
		if verdict.ExternalID, err = s.foundID(v, id, target, v.PostForm.Get("found")); err != nil {
			return err
		}
	case "not-sent":
	default: // what may be sent again is said in words
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say whether the post was published; load the page again"}
	}
	if err := s.Service.Settle(v.Context(), v.caller, id, target, verdict); err != nil {
		return err
	}
	v.leave(w, "posts/"+id, "settled")
	return nil
}

// foundID is the platform's own id of a post that a person found.
func (s *Site) foundID(v *visit, post string, target int, found string) (string, error) {
	of, err := s.Service.ReadPost(v.Context(), v.caller, post)
	if err != nil {
		return "", err
	}
	if target < 0 || target >= len(of.Spec.Targets) {
		return "", &bridge.Error{Code: bridge.CodeValidation, Message: "the post does not go to the account that the form names; load the page again"}
	}
	page := ""
	if account := s.account(v, of.Spec.Targets[target].ConnectionRef.Name); account != nil {
		page = account.Spec.AccountID
	}
	platform := s.platformOf(v, of, target)
	id := idOf(platform, page, found)
	if id == "" {
		return "", &bridge.Error{Code: bridge.CodeValidation, Message: "what you entered names no post of " + platform.Title() + ". Enter " + whatToEnter(platform)}
	}
	return id, nil
}

// whatToEnter says, for each platform, what names a post there and where a person finds it.
func whatToEnter(p v1alpha1.Platform) string {
	switch p {
	case v1alpha1.PlatformX:
		return "the address of the post, which has /status/ and a number: open the post and copy the address, or use Share, Copy link"
	case v1alpha1.PlatformTikTok:
		return "the address of the post, which has /video/ or /photo/ and a number: open the post in a browser. A short address, of vm.tiktok.com, becomes the long one there"
	case v1alpha1.PlatformYouTube:
		return "the address of the video, from Share or from YouTube Studio. Its id has 11 characters"
	case v1alpha1.PlatformFacebook:
		return "the id of the post, a number. It stands in the address after /posts/ or story_fbid=. Where there is a text that begins with pfbid instead, or the address is of a photo, " +
			"take the column Post ID that stands beside Permalink in the export of the Insights in Meta Business Suite"
	case v1alpha1.PlatformInstagram:
		return "the id of the post, a number of some 17 digits. The code in its address is another one. Take the column Post ID that stands beside Permalink " +
			"in the export of the Insights in Meta Business Suite; or ask the API, GET /me/media?fields=id,permalink"
	case v1alpha1.PlatformThreads:
		return "the id of the post, a number of some 17 digits. The code in its address is another one. The API tells it: GET /me/threads?fields=id,permalink"
	default:
		return "the platform's own id of the post"
	}
}

// The forms of ids. Those of X, TikTok and Meta are numbers of up to 64 bits; YouTube's have 11 characters.
var (
	number    = regexp.MustCompile(`^[0-9]{1,20}$`)
	metaID    = regexp.MustCompile(`^[0-9]{10,20}$`)
	pagePost  = regexp.MustCompile(`^[0-9]{1,20}_[0-9]{1,20}$`)
	youTubeID = regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`)
)

// idOf is the id of a post on a platform, from what a person found: the id itself, or the address if the id follows from it. It is
// empty if that names no post there. page is the platform's id of the account.
func idOf(p v1alpha1.Platform, page, found string) string {
	found = strings.TrimSpace(found)
	at, isAddress := readAddress(found)
	if isAddress && at.of != "" && at.of != p {
		return ""
	}
	switch p {
	case v1alpha1.PlatformX:
		return only(number, at.after(found, "status"))
	case v1alpha1.PlatformTikTok:
		return only(number, at.after(found, "video", "photo"))
	case v1alpha1.PlatformYouTube:
		if id := at.query.Get("v"); id != "" {
			return only(youTubeID, id)
		}
		if isAddress && at.host == "youtu.be" {
			return only(youTubeID, at.parts[0])
		}
		return only(youTubeID, at.after(found, "shorts", "live", "embed", "video"))
	case v1alpha1.PlatformFacebook:
		return facebookID(at, page, found)
	case v1alpha1.PlatformInstagram, v1alpha1.PlatformThreads:
		if isAddress {
			return "" // it has a code, from which the id does not follow
		}
		return only(metaID, found)
	default:
		return only(number, found)
	}
}

// facebookID is the id of a Page's post: the id of the Page, and that of the post. An address may name the Page by another id of its
// own, that of its profile; the one that counts is the one of the account.
func facebookID(at address, page, found string) string {
	last := found
	switch {
	case at.query.Get("story_fbid") != "":
		if last = at.query.Get("story_fbid"); page == "" {
			page = at.query.Get("id")
		}
	case slices.Contains(at.parts, "posts"):
		last = at.parts[len(at.parts)-1]
	case len(at.parts) > 0:
		return only(pagePost, at.parts[len(at.parts)-1])
	}
	if only(pagePost, last) != "" {
		return last
	}
	if only(number, last) == "" || only(number, page) == "" {
		return ""
	}
	return page + "_" + last
}

// only is an id, if it has the form that ids have.
func only(form *regexp.Regexp, id string) string {
	if !form.MatchString(id) {
		return ""
	}
	return id
}

// address is that of a page on the web.
type address struct {
	host string
	// of is whose address it is; empty if it is of no platform's own site.
	of    v1alpha1.Platform
	parts []string
	query url.Values
}

// sites are the platforms' own.
var sites = map[string]v1alpha1.Platform{
	"x.com": v1alpha1.PlatformX, "twitter.com": v1alpha1.PlatformX, "threads.com": v1alpha1.PlatformThreads, "threads.net": v1alpha1.PlatformThreads,
	"instagram.com": v1alpha1.PlatformInstagram, "facebook.com": v1alpha1.PlatformFacebook, "fb.com": v1alpha1.PlatformFacebook,
	"tiktok.com": v1alpha1.PlatformTikTok, "youtube.com": v1alpha1.PlatformYouTube, "youtu.be": v1alpha1.PlatformYouTube,
}

// readAddress reads an address as people copy it, with or without its scheme; false if it is none. It has one part at least.
func readAddress(found string) (address, bool) {
	if !strings.Contains(found, "/") {
		return address{}, false
	}
	if !strings.Contains(found, "://") {
		found = "https://" + found // browsers hide it
	}
	u, err := url.Parse(found)
	if err != nil || u.Host == "" {
		return address{}, false
	}
	at := address{host: strings.TrimPrefix(strings.ToLower(u.Hostname()), "www."), parts: strings.Split(strings.Trim(u.Path, "/"), "/"), query: u.Query()}
	for site, platform := range sites {
		if at.host == site || strings.HasSuffix(at.host, "."+site) {
			at.of = platform
		}
	}
	return at, true
}

// after is the part of the address that follows one of these; of what is no address, all of it.
func (a address) after(found string, names ...string) string {
	if a.parts == nil {
		return found
	}
	for i, part := range a.parts[:len(a.parts)-1] {
		if slices.Contains(names, part) {
			return a.parts[i+1]
		}
	}
	return ""
}
