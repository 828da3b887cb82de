// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/facebook"
	"github.com/herald-social/herald/platforms/instagram"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/platforms/youtube"
	"github.com/herald-social/herald/posting/attempt"
)

// Every platform publishes in two steps, connects accounts, and shows users an account's posts.
var _ = []interface {
	platforms.Publisher
	platforms.Preparer
	platforms.Connector
	platforms.Confirmer
	platforms.Lister
	platforms.PostParser
}{
	(*x.Platform)(nil), (*threads.Platform)(nil), (*instagram.Platform)(nil), (*facebook.Platform)(nil), (*tiktok.Platform)(nil), (*youtube.Platform)(nil),
}

// readers returns every platform in its default configuration. The tests make no calls to them.
func readers() platforms.Registry {
	client := transport.New(transport.Options{})
	return platforms.Registry{
		v1alpha1.PlatformX: x.New(x.Config{}, client), v1alpha1.PlatformThreads: threads.New(threads.Config{}, client),
		v1alpha1.PlatformInstagram: instagram.New(instagram.Config{}, client), v1alpha1.PlatformFacebook: facebook.New(facebook.Config{}, client),
		v1alpha1.PlatformTikTok: tiktok.New(tiktok.Config{}, client), v1alpha1.PlatformYouTube: youtube.New(youtube.Config{}, client),
	}
}

// TestReadPost parses user input that identifies a post.
func TestReadPost(t *testing.T) {
	t.Parallel()
	const (
		x, threads, instagram     = v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformInstagram
		facebook, tiktok, youtube = v1alpha1.PlatformFacebook, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube
	)
	account := platforms.Account{ID: "61550", Username: "acme"}
	for name, tc := range map[string]struct {
		reason  string
		on      v1alpha1.Platform
		entered string
		want    platforms.PostName
	}{
		"ID":                {"a text that is not a URL is the id", x, " 1860000000000000000 ", platforms.PostName{ID: "1860000000000000000"}},
		"X":                 {"the part after status", x, "https://x.com/acme/status/186?s=20", platforms.PostName{ID: "186", URL: "https://x.com/acme/status/186"}},
		"XPhoto":            {"the id is not always the last segment on X", x, "https://x.com/acme/status/186/photo/1", platforms.PostName{ID: "186", URL: "https://x.com/acme/status/186"}},
		"XWithoutName":      {"the name is optional", x, "https://x.com/i/web/status/186", platforms.PostName{ID: "186", URL: "https://x.com/acme/status/186"}},
		"NoScheme":          {"browsers hide the scheme", x, "x.com/acme/status/186", platforms.PostName{ID: "186", URL: "https://x.com/acme/status/186"}},
		"Sandbox":           {"the sandbox has its own addresses", x, "http://127.0.0.1:9100/x/acme/status/186", platforms.PostName{ID: "186", URL: "https://x.com/acme/status/186"}},
		"XProfile":          {"a profile is not a post", x, "https://x.com/acme", platforms.PostName{}},
		"XWords":            {"a text is not an id", x, "the one of yesterday", platforms.PostName{}},
		"OtherPlatform":     {"another platform's URL does not identify a post here", x, "https://www.tiktok.com/@acme/status/7231", platforms.PostName{}},
		"TikTok":            {"TikTok's address", tiktok, "https://www.tiktok.com/@acme/video/7231?lang=en", platforms.PostName{ID: "7231", URL: "https://www.tiktok.com/@acme/video/7231"}},
		"TikTokPhoto":       {"photo posts, which Herald cannot look up itself", tiktok, "https://www.tiktok.com/@acme/photo/7231", platforms.PostName{ID: "7231", URL: "https://www.tiktok.com/@acme/photo/7231"}},
		"TikTokShort":       {"a short URL does not contain the id", tiktok, "https://vm.tiktok.com/ZMabcdef/", platforms.PostName{}},
		"YouTube":           {"YouTube has the id in the query", youtube, "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=1", platforms.PostName{ID: "dQw4w9WgXcQ", URL: "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}},
		"YouTubeShort":      {"a short URL has the id in the path", youtube, "https://youtu.be/dQw4w9WgXcQ", platforms.PostName{ID: "dQw4w9WgXcQ", URL: "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}},
		"YouTubeShorts":     {"the URL of a short has the id in the path", youtube, "https://www.youtube.com/shorts/dQw4w9WgXcQ/", platforms.PostName{ID: "dQw4w9WgXcQ", URL: "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}},
		"YouTubeStudio":     {"the editor's URL contains the id", youtube, "https://studio.youtube.com/video/dQw4w9WgXcQ/edit", platforms.PostName{ID: "dQw4w9WgXcQ", URL: "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}},
		"YouTubeID":         {"an id has 11 characters", youtube, "dQw4w9WgXcQ", platforms.PostName{ID: "dQw4w9WgXcQ"}},
		"YouTubeChannel":    {"a channel is not a video", youtube, "https://www.youtube.com/@acme", platforms.PostName{}},
		"Facebook":          {"Facebook's ids have both numbers", facebook, "61550_122", platforms.PostName{ID: "61550_122"}},
		"FacebookNumber":    {"the Page's id is known", facebook, "122", platforms.PostName{ID: "61550_122"}},
		"FacebookPath":      {"the address of a post of a Page", facebook, "https://www.facebook.com/acme/posts/122", platforms.PostName{ID: "61550_122", URL: "https://www.facebook.com/acme/posts/122", Other: true}},
		"FacebookWords":     {"the path may contain a title", facebook, "https://www.facebook.com/acme/posts/we-launched/122/?ref=share", platforms.PostName{ID: "61550_122", URL: "https://www.facebook.com/acme/posts/we-launched/122", Other: true}},
		"FacebookQuery":     {"a permalink has the ids in its query", facebook, "https://www.facebook.com/permalink.php?story_fbid=122&id=61550", platforms.PostName{ID: "61550_122", URL: "https://www.facebook.com/permalink.php?id=61550&story_fbid=122", Other: true}},
		"FacebookProfile":   {"where the Page has the id of its profile", facebook, "https://www.facebook.com/permalink.php?story_fbid=122&id=1000", platforms.PostName{ID: "61550_122", URL: "https://www.facebook.com/permalink.php?id=1000&story_fbid=122", Other: true}},
		"FacebookBoth":      {"the API uses this form", facebook, "https://www.facebook.com/61550_122", platforms.PostName{ID: "61550_122", URL: "https://www.facebook.com/61550_122", Other: true}},
		"FacebookPfbid":     {"most addresses have a code, which may differ in the list", facebook, "https://www.facebook.com/acme/posts/pfbid02abcDEF", platforms.PostName{Code: "pfbid02abcDEF", URL: "https://www.facebook.com/acme/posts/pfbid02abcDEF", Other: true}},
		"FacebookPfbidToo":  {"in permalinks too", facebook, "https://www.facebook.com/permalink.php?story_fbid=pfbid02abcDEF&id=61550", platforms.PostName{Code: "pfbid02abcDEF", URL: "https://www.facebook.com/permalink.php?id=61550&story_fbid=pfbid02abcDEF", Other: true}},
		"FacebookPhoto":     {"a photo's number is longer", facebook, "https://www.facebook.com/photo/?fbid=122", platforms.PostName{}},
		"Instagram":         {"a number of the API", instagram, "17895695668004550", platforms.PostName{ID: "17895695668004550"}},
		"InstagramAddress":  {"the code in an address is searched in the list", instagram, "https://www.instagram.com/p/CuZ1abcDEFg/", platforms.PostName{Code: "CuZ1abcDEFg", URL: "https://www.instagram.com/p/CuZ1abcDEFg"}},
		"InstagramCode":     {"a code alone is not an id", instagram, "CuZ1abcDEFg", platforms.PostName{}},
		"Threads":           {"a number of the API", threads, "18050206876707110", platforms.PostName{ID: "18050206876707110"}},
		"ThreadsAddress":    {"the code in an address is searched in the list", threads, "https://www.threads.com/@acme/post/CuZ1abcDEFg", platforms.PostName{Code: "CuZ1abcDEFg", URL: "https://www.threads.com/@acme/post/CuZ1abcDEFg"}},
		"Site":              {"a site's address is not a post", x, "https://x.com/", platforms.PostName{}},
		"YouTubeSite":       {"on any platform", youtube, "https://youtu.be/", platforms.PostName{}},
		"Nothing":           {"the input is empty", x, "  ", platforms.PostName{}},
		"NothingOnFacebook": {"Page ids are prefixes of post ids", facebook, "  ", platforms.PostName{}},
		"Injected":          {"an id cannot contain several answers", facebook, "1,1=posted:2", platforms.PostName{}},
		"FacebookVideo":     {"a video has another number than its post", facebook, "https://www.facebook.com/acme/videos/1234567/", platforms.PostName{Code: "1234567", URL: "https://www.facebook.com/acme/videos/1234567", Other: true}},
		"FacebookTitle":     {"a title may precede the number", facebook, "https://www.facebook.com/acme/videos/we-launched/1234567/", platforms.PostName{Code: "1234567", URL: "https://www.facebook.com/acme/videos/we-launched/1234567", Other: true}},
		"InstagramShare":    {"the code of a shared address is not that of the post", instagram, "https://www.instagram.com/share/reel/BAxyz12", platforms.PostName{}},
		"FacebookShare":     {"the Share button uses its own addresses", facebook, "https://www.facebook.com/share/p/1AbCdEfGhI/?mibextid=wwXIfr", platforms.PostName{Code: "1AbCdEfGhI", URL: "https://www.facebook.com/share/p/1AbCdEfGhI", Other: true}},
		"FacebookRealPhoto": {"a photo's number is not its post's", facebook, "https://www.facebook.com/photo/?fbid=122100000000001&set=a.1", platforms.PostName{Code: "122100000000001", URL: "https://www.facebook.com/photo?fbid=122100000000001", Other: true}},
		"FacebookPage":      {"a Page is not a post", facebook, "https://www.facebook.com/acme", platforms.PostName{}},
		"InstagramReel":     {"films have another path", instagram, "instagram.com/reel/CuZ1abcDEFg/?igsh=abc", platforms.PostName{Code: "CuZ1abcDEFg", URL: "https://instagram.com/reel/CuZ1abcDEFg"}},
		"InstagramProfile":  {"a profile is not a post", instagram, "https://www.instagram.com/acme/", platforms.PostName{}},
		"User":              {"an address with a name before its host leads elsewhere", x, "https://x.com@evil.example/acme/status/186", platforms.PostName{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := readers().PostParser(tc.on).ParsePost(account, tc.entered)
			if isNamed := tc.want != (platforms.PostName{}); ok != isNamed || ok && got != tc.want {
				t.Errorf("%s: got %+v (%v), want %+v", tc.reason, got, ok, tc.want)
			}
		})
	}
	reader := readers().PostParser(facebook)
	if got, _ := reader.ParsePost(platforms.Account{}, "https://www.facebook.com/permalink.php?story_fbid=122&id=61550"); got.ID != "61550_122" {
		t.Errorf("without a Page, the address determines it: got %+v", got)
	}
	if got, ok := reader.ParsePost(platforms.Account{}, "122"); ok {
		t.Errorf("an incomplete id must be rejected: got %+v", got)
	}
}

// FuzzReadPost checks that any accepted user input yields either an id that attempt.ParseResolutions accepts, or a code
// with a URL.
func FuzzReadPost(f *testing.F) {
	for _, found := range []string{
		"1991000000000000001", "https://x.com/a/status/1991000000000000001?s=20", "youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
		"https://m.facebook.com/story.php?story_fbid=1&id=2", "https://www.facebook.com/9/posts/1", "https://www.facebook.com/a/posts/pfbid02abc", "https://fb.watch/abcdef/",
		"https://www.instagram.com/p/CuZ1abcDEFg/", "facebook.com/", "https://evil.example/a/status/1", "a,1=posted:2", "https://x,1=posted/p/abcdef", "//", "/", "/a",
	} {
		f.Add(found, "42")
	}
	all := readers()
	f.Fuzz(func(t *testing.T, entered, account string) {
		for p := range all {
			name, ok := all.PostParser(p).ParsePost(platforms.Account{ID: account}, entered)
			if !ok {
				continue
			}
			if name.ID != "" {
				verdicts, err := attempt.ParseResolutions("0=posted:" + name.ID)
				if err != nil || len(verdicts) != 1 || verdicts[0].ExternalID != name.ID {
					t.Errorf("%s: %q reads as %+v, and the verdict as %+v: %v", p, entered, name, verdicts, err)
				}
			} else if name.Code == "" || name.URL == "" {
				t.Errorf("%s: %q was parsed as %+v without a name", p, entered, name)
			}
		}
	})
}
