// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// env has a connection to a platform that accepts captions of ten code points without "!", one to a platform that does
// not accept text posts, and one to a platform that is not registered.
func env() Env {
	conns := map[string]v1alpha1.Platform{"x": v1alpha1.PlatformX, "video": v1alpha1.PlatformYouTube, "other": v1alpha1.PlatformTikTok}
	limits := map[v1alpha1.Platform]platforms.Capabilities{
		v1alpha1.PlatformX: {
			Categories: []v1alpha1.Category{v1alpha1.CategoryText}, MaxCaption: 10, CaptionUnit: "characters",
			CaptionLength: utf8.RuneCountInString,
			CaptionProblem: func(text string) string {
				if strings.Contains(text, "!") {
					return "must not shout"
				}
				return ""
			},
		},
		v1alpha1.PlatformYouTube: {},
	}
	return Env{
		Connection: func(name string) *v1alpha1.Connection {
			p, ok := conns[name]
			if !ok {
				return nil
			}
			return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: p}}
		},
		Capabilities: func(p v1alpha1.Platform) (platforms.Capabilities, bool) { l, ok := limits[p]; return l, ok },
	}
}

func TestValidate(t *testing.T) {
	target := func(conn, caption string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: conn}, Caption: caption}
	}
	future := v1alpha1.NewTimePtr(time.Now().Add(time.Hour))
	in := func(language string) v1alpha1.PostSpec {
		to := target("x", "a")
		to.Language = language
		return v1alpha1.PostSpec{Draft: true, Targets: []v1alpha1.PostTarget{to}}
	}
	for _, tt := range []struct {
		name   string
		reason string
		spec   v1alpha1.PostSpec
		want   []string
	}{
		{"a language", "a tag may have a script and a region", in("zh-Hant-TW"), nil},
		{"a language in other letters", "Kubernetes would refuse it in its own words", in("pt-br"), []string{"Invalid spec.targets[0].language"}},
		{"the beginning of a language", "a user may still be typing it", in("p"), []string{"Invalid spec.targets[0].language"}},
		{"fine", "the post is valid", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("x", "0123456789")}}, nil},
		{"same connection twice", "only trees limit a connection to one target", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("x", "a"), target("x", "b")}}, nil},
		{"no target", "the post has no destination", v1alpha1.PostSpec{}, []string{"Required spec.targets"}},
		{"too long", "the platform would reject the caption", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("x", "01234567890")}}, []string{"Invalid spec.targets[0].caption"}},
		{"against the platform's rules", "platforms may have rules beyond lengths", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("x", "hey!")}}, []string{"Invalid spec.targets[0].caption"}},
		{"empty", "a post that is published needs a caption", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("x", "")}}, []string{"Required spec.targets[0].caption"}},
		{"empty draft", "a draft may be finished later", v1alpha1.PostSpec{Draft: true, Targets: []v1alpha1.PostTarget{target("x", "")}}, nil},
		{"draft too long", "limits apply to drafts too", v1alpha1.PostSpec{Draft: true, Targets: []v1alpha1.PostTarget{target("x", "01234567890")}}, []string{"Invalid spec.targets[0].caption"}},
		{"draft with a time", "the two contradict", v1alpha1.PostSpec{Draft: true, ScheduledAt: future, Targets: []v1alpha1.PostTarget{target("x", "a")}}, []string{"Forbidden spec.scheduledAt"}},
		{"unknown connection", "the connection may be created later, so the error has its own type", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("x", "a"), target("gone", "a")}}, []string{"NotFound spec.targets[1].connectionRef.name"}},
		{"category not supported", "the platform does not have such posts", v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("video", "a")}}, []string{"Invalid spec.targets[0].connectionRef.name"}},
		{"platform not registered", "the installation cannot publish there", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("other", "a")}}, []string{"Invalid spec.targets[0].connectionRef.name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.spec.Category == "" {
				tt.spec.Category = v1alpha1.CategoryText
			}
			var got []string
			for _, err := range Validate(&v1alpha1.Post{Spec: tt.spec}, env()) {
				got = append(got, strings.TrimPrefix(string(err.Type), "FieldValue")+" "+err.Field)
				if err.Detail == "" {
					t.Errorf("%s: the detail is missing", err.Field)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s:\n%s", tt.reason, diff)
			}
		})
	}
}

// TestOptionsCount tests that the options of a target count toward its text, and toward each card of a tree.
func TestOptionsCount(t *testing.T) {
	env := env()
	env.Connection = func(string) *v1alpha1.Connection {
		return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformMastodon}}
	}
	env.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
		return platforms.Capabilities{
			Categories: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree}, MaxCaption: 10, CaptionUnit: "characters", CaptionLength: utf8.RuneCountInString,
			OptionsLength: func(target *v1alpha1.PostTarget) int {
				if target.Mastodon == nil {
					return 0
				}
				return utf8.RuneCountInString(target.Mastodon.ContentWarning)
			},
		}, true
	}
	const card = "spec.tree.cards[0].caption: 11 characters with the target's options are too many for mastodon"
	for name, tc := range map[string]struct {
		reason   string
		warnings []string
		text     string
		tree     bool
		want     string
	}{
		"within":          {"together they are ten", []string{"01234"}, "01234", false, ""},
		"beyond":          {"together they are eleven", []string{"012345"}, "01234", false, "spec.targets[0].caption: 11 characters with the target's options are too many for mastodon"},
		"alone":           {"a draft may have no text yet", []string{"01234567890"}, "", false, "spec.targets[0].caption: 11 characters"},
		"none":            {"the text may take all", []string{""}, "0123456789", false, ""},
		"NUL":             {"some programs truncate it", []string{"\x00"}, "a", false, "spec.targets[0].mastodon.contentWarning: must not contain"},
		"a tree":          {"each card has the warning", []string{"01234"}, "01234", true, ""},
		"beyond on cards": {"each card has the warning", []string{"012345"}, "01234", true, card},
		"the longest":     {"every account receives each card", []string{"", "012345", "0"}, "01234", true, card},
	} {
		spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Draft: tc.text == ""}
		for i, warning := range tc.warnings {
			target := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprint("c-", i)}, Caption: tc.text}
			if warning != "" {
				target.Mastodon = &v1alpha1.MastodonOptions{ContentWarning: warning}
			}
			spec.Targets = append(spec.Targets, target)
		}
		if tc.tree {
			spec.Category, spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: tc.text}, {Caption: "a"}}}
			for i := range spec.Targets {
				spec.Targets[i].Caption = ""
			}
		}
		switch errs := Validate(&v1alpha1.Post{Spec: spec}, env); {
		case tc.want == "" && len(errs) == 0:
		case tc.want == "" || len(errs) != 1 || !strings.HasPrefix(strings.Replace(errs[0].Error(), ": Invalid value", "", 1), tc.want):
			t.Errorf("%s: %s: %v", name, tc.reason, errs)
		}
	}
}

// TestLimitsOfAnAccount tests that an account's own limits replace its platform's, and that the strictest limits of a
// platform's accounts apply if there are several.
func TestLimitsOfAnAccount(t *testing.T) {
	env := env()
	env.Connection = func(name string) *v1alpha1.Connection {
		characters := map[string]int32{"five": 5, "twenty": 20}[name]
		return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX}, Status: v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{MaxCharacters: characters}}}
	}
	env.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
		rules := platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree}, MaxCaption: 10, CaptionUnit: "characters", CaptionLength: utf8.RuneCountInString}
		rules.ForAccount = func(account *v1alpha1.ConnectionStatus) platforms.Capabilities {
			own := rules
			own.MaxCaption = int(account.Mastodon.MaxCharacters)
			return own
		}
		return rules, true
	}
	for name, tc := range map[string]struct {
		reason   string
		accounts []string
		text     string
		tree     bool
		valid    bool
	}{
		"within its own":     {"the account's server permits more than others", []string{"twenty"}, "01234567890", false, true},
		"beyond its own":     {"the account's server permits less", []string{"five"}, "012345", false, false},
		"a tree within both": {"cards have no account of their own", []string{"twenty", "five"}, "01234", true, true},
		"a tree beyond one":  {"every account receives each card", []string{"twenty", "five"}, "012345", true, false},
	} {
		spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryText}
		for _, account := range tc.accounts {
			spec.Targets = append(spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: account}, Caption: tc.text})
		}
		if tc.tree {
			spec.Category, spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: tc.text}, {Caption: tc.text}}}
			for i := range spec.Targets {
				spec.Targets[i].Caption = ""
			}
		}
		if errs := Validate(&v1alpha1.Post{Spec: spec}, env); (len(errs) == 0) != tc.valid {
			t.Errorf("%s: %s: %v", name, tc.reason, errs)
		}
	}
}

func TestValidateTime(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		at   *v1alpha1.Time
		want int
	}{
		{"immediate", nil, 0},
		{"a millisecond in the future", v1alpha1.NewTimePtr(now.Add(time.Millisecond)), 0},
		{"now", v1alpha1.NewTimePtr(now), 1},
		{"past", v1alpha1.NewTimePtr(now.Add(-time.Hour)), 1},
	} {
		p := &v1alpha1.Post{Spec: v1alpha1.PostSpec{ScheduledAt: tt.at}}
		if got := ValidateTime(p, now); len(got) != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestValidateOptions checks that each target's options are validated by its own platform, with the choices that the
// Connection lists for the account.
func TestValidateOptions(t *testing.T) {
	t.Parallel()
	connections := map[string]*v1alpha1.Connection{}
	for name, platform := range map[string]v1alpha1.Platform{"tiktok": v1alpha1.PlatformTikTok, "x": v1alpha1.PlatformX, "away": v1alpha1.PlatformThreads} {
		connections[name] = &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: platform}}
		connections[name].Status.TikTok = &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{name}}
	}
	refuses := func(target *v1alpha1.PostTarget, draft bool, account *v1alpha1.ConnectionStatus, path *field.Path) field.ErrorList {
		return field.ErrorList{field.Invalid(path.Child("option"), account.TikTok.PrivacyLevelOptions[0], fmt.Sprint(target.Caption, ", draft ", draft))}
	}
	env := Env{
		Connection: func(name string) *v1alpha1.Connection { return connections[name] },
		Capabilities: func(platform v1alpha1.Platform) (platforms.Capabilities, bool) {
			if platform == v1alpha1.PlatformTikTok {
				return platforms.Capabilities{ValidateOptions: refuses}, true
			}
			return platforms.Capabilities{}, platform == v1alpha1.PlatformX
		},
	}
	post := &v1alpha1.Post{}
	post.Spec.Draft = true
	for _, name := range []string{"tiktok", "x", "away", "missing", "tiktok"} {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{Caption: "to " + name, ConnectionRef: v1alpha1.LocalReference{Name: name}})
	}
	var got []string
	for _, err := range ValidateOptions(post, env) {
		got = append(got, err.Error())
	}
	want := []string{
		`spec.targets[0].option: Invalid value: "tiktok": to tiktok, draft true`,
		`spec.targets[4].option: Invalid value: "tiktok": to tiktok, draft true`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// TestValidateAudiences checks that a post for some readers is not shown to everyone.
func TestValidateAudiences(t *testing.T) {
	t.Parallel()
	deleted := v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX}}
	deleted.DeletionTimestamp = new(metav1.Now())
	env := Env{Connection: func(name string) *v1alpha1.Connection {
		switch name {
		case "missing":
			return nil
		case "deleted":
			return &deleted
		}
		return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.Platform(name)}}
	}}
	const everyone = ", so the post would be visible to everyone; set it to null, or choose another connection"
	for name, tc := range map[string]struct {
		reason, connection string
		options            *v1alpha1.MastodonOptions
		want               string
	}{
		"private on Mastodon": {"it has such an audience", "mastodon", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPrivate}, ""},
		"private on X":        {"everyone would see it", "x", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPrivate}, `x does not have the audience "private"` + everyone},
		"direct on Bluesky":   {"everyone would see it", "bluesky", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonDirect}, `bluesky does not have the audience "direct"` + everyone},
		"public on X":         {"everyone sees it", "x", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPublic}, ""},
		"unlisted on X":       {"everyone may see it", "x", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonUnlisted}, ""},
		"a warning on X":      {"it limits no audience", "x", &v1alpha1.MastodonOptions{ContentWarning: "a"}, ""},
		"no options":          {"most targets have none", "x", nil, ""},
		"missing":             {"Validate reports it", "missing", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPrivate}, ""},
		"deleted":             {"Validate reports it", "deleted", &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPrivate}, ""},
	} {
		post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Draft: true, Targets: []v1alpha1.PostTarget{
			{ConnectionRef: v1alpha1.LocalReference{Name: "x"}}, {ConnectionRef: v1alpha1.LocalReference{Name: tc.connection}, Mastodon: tc.options},
		}}}
		var got []string
		for _, err := range ValidateAudiences(post, env) {
			got = append(got, err.Field+": "+err.Detail)
		}
		want := "spec.targets[1].mastodon.visibility: " + tc.want
		if tc.want == "" && len(got) > 0 || tc.want != "" && !cmp.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q (%s)", name, got, tc.want, tc.reason)
		}
	}
}
