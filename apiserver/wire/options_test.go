// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/strictjson"
)

func parse(t *testing.T, body string) strictjson.Value {
	t.Helper()
	parsed, err := strictjson.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// created reports whether a post was created. If wrong is set, the post must not be created, and the error must contain
// wrong.
func created(t *testing.T, err error, reason, wrong string) bool {
	t.Helper()
	if wrong != "" {
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", reason, err, wrong)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v", reason, err)
	}
	return true
}

func TestMastodonOptions(t *testing.T) {
	t.Parallel()
	full := &v1alpha1.MastodonOptions{ContentWarning: "the ending", Sensitive: true, Visibility: v1alpha1.MastodonUnlisted}
	const none = `,"content_warning":null,"sensitive":false,"visibility":null`
	for name, tc := range map[string]struct {
		reason, members string
		want            *v1alpha1.MastodonOptions
		shown, wrong    string
	}{
		"All":      {"each is sent", `"content_warning":"the ending","sensitive":true,"visibility":"unlisted"`, full, `,"content_warning":"the ending","sensitive":true,"visibility":"unlisted"`, ""},
		"One":      {"the others are the account's", `"visibility":"direct"`, &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonDirect}, `,"content_warning":null,"sensitive":false,"visibility":"direct"`, ""},
		"None":     {"most targets have none", `"caption":"a"`, nil, none, ""},
		"Shown":    {"a client may send back what it reads", `"content_warning":null,"sensitive":false,"visibility":null`, nil, none, ""},
		"Empty":    {"a form sends it so", `"content_warning":""`, nil, none, ""},
		"Audience": {"Mastodon has no other", `"visibility":"friends"`, nil, "", "targets[0].visibility: must be one of"},
		"Long":     {"the resource takes 500 characters", `"content_warning":"` + strings.Repeat("a", 501) + `"`, nil, "", "targets[0].content_warning: must have at most 500"},
		"Word":     {"it is a switch", `"sensitive":"yes"`, nil, "", "targets[0].sensitive: must be"},
	} {
		for _, category := range []string{`"text"`, `"tree","tree_cards":[{"caption":"a"},{"caption":"b"}]`} {
			if strings.Contains(category, "tree") && name == "None" {
				continue // a tree's target has no caption
			}
			t.Run(name+category[:6], func(t *testing.T) {
				t.Parallel()
				body := `{"category":` + category + `,"targets":[{"connection_id":"c",` + tc.members + `}]}`
				got, err := CreatePostV2(parse(t, body))
				if !created(t, err, tc.reason, tc.wrong) {
					return
				}
				target := &got.Spec.Targets[0]
				if diff := cmp.Diff(tc.want, target.Mastodon); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				if shown := string(appendTarget(nil, target)); !strings.HasSuffix(shown, tc.shown) {
					t.Errorf("%s: shown as %s", tc.reason, shown)
				}
				changed := UpdatePost(parse(t, body), &v1alpha1.PostSpec{Category: got.Spec.Category, Tree: got.Spec.Tree})
				if diff := cmp.Diff(tc.want, changed.Spec.Targets[0].Mastodon); diff != "" {
					t.Errorf("%s: an update (-want +got):\n%s", tc.reason, diff)
				}
				if v1, _ := CreatePost(parse(t, body)); v1.Spec.Targets[0].Mastodon != nil {
					t.Errorf("version 1 reads %+v", v1.Spec.Targets[0].Mastodon)
				}
			})
		}
	}
}

func TestFocalPoints(t *testing.T) {
	t.Parallel()
	const images, video, tree = `"category":"image","media_ids":["a","b"],`, `"category":"video","media_id":"a",`, `"category":"tree","tree_cards":[{"media_ids":["a","b"],`
	corner, middle := &v1alpha1.FocalPoint{X: -100, Y: 100}, &v1alpha1.FocalPoint{}
	for name, tc := range map[string]struct {
		reason, body string
		want         []*v1alpha1.FocalPoint
		shown, wrong string
	}{
		"Images":  {"each image has its own", images + `"focal_points":[{"x":-100,"y":100},null]`, []*v1alpha1.FocalPoint{corner, nil}, `[{"x":-100,"y":100},null]`, ""},
		"Middle":  {"zero is a point", images + `"focal_points":[null,{"x":0,"y":0}]`, []*v1alpha1.FocalPoint{nil, middle}, `[null,{"x":0,"y":0}]`, ""},
		"Without": {"most files have none", images + `"alt_texts":["A cat","A dog"]`, []*v1alpha1.FocalPoint{nil, nil}, `[null,null]`, ""},
		"Video":   {"a video has one, too", video + `"focal_point":{"x":-100,"y":100}`, []*v1alpha1.FocalPoint{corner}, `[{"x":-100,"y":100}]`, ""},
		"Card":    {"cards have files as well", tree + `"focal_points":[{"x":-100,"y":100},null]},{"caption":"b"}]`, []*v1alpha1.FocalPoint{corner, nil}, `[{"x":-100,"y":100},null]`, ""},
		"Few":     {"each file needs one or null", images + `"focal_points":[null]`, nil, "", "focal_points: has 1 items, and media_ids 2; write one focal point"},
		"Outside": {"there is nothing beyond the edge", images + `"focal_points":[null,{"x":101,"y":0}]`, nil, "", "focal_points[1].x: must be at most 100"},
		"Below":   {"there is nothing beyond the edge", images + `"focal_points":[null,{"x":0,"y":-101}]`, nil, "", "focal_points[1].y: must be at least -100"},
		"Half":    {"a point has two coordinates", video + `"focal_point":{"x":1}`, nil, "", "focal_point.y: is missing"},
		"Text":    {"a point is an object", video + `"focal_point":"center"`, nil, "", "focal_point: must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{` + tc.body + `,"targets":[{"connection_id":"c"}]}`
			got, err := CreatePostV2(parse(t, body))
			if !created(t, err, tc.reason, tc.wrong) {
				return
			}
			if diff := cmp.Diff(tc.want, points(&got.Spec)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if shown := string(appendFiles(nil, references(&got.Spec))); !strings.HasSuffix(shown, `,"focal_points":`+tc.shown) {
				t.Errorf("%s: shown as %s", tc.reason, shown)
			}
			if v1, _ := CreatePost(parse(t, body)); !cmp.Equal(points(&v1.Spec), make([]*v1alpha1.FocalPoint, len(tc.want))) {
				t.Errorf("version 1 reads %v", points(&v1.Spec))
			}
		})
	}
}

// TestUpdateOfFocalPoints checks that the remaining files keep their focal points until a request replaces them.
func TestUpdateOfFocalPoints(t *testing.T) {
	t.Parallel()
	left, right := &v1alpha1.FocalPoint{X: -50}, &v1alpha1.FocalPoint{X: 50}
	refs := []v1alpha1.MediaReference{{Name: "a", AltText: "A cat", FocalPoint: left}, {Name: "b"}}
	image := v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: refs}}
	video := v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: refs[0]}}
	tree := v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{MediaRefs: refs}, {Caption: "b"}}}}
	for name, tc := range map[string]struct {
		reason string
		stored *v1alpha1.PostSpec
		body   string
		want   []*v1alpha1.FocalPoint
	}{
		"Other field":    {"it has nothing to do with them", &image, `{"draft":false}`, []*v1alpha1.FocalPoint{left, nil}},
		"Order":          {"a point belongs to its file", &image, `{"media_ids":["b","a","c"]}`, []*v1alpha1.FocalPoint{nil, left, nil}},
		"Points":         {"a list is replaced as a whole", &image, `{"focal_points":[null,{"x":50,"y":0}]}`, []*v1alpha1.FocalPoint{nil, right}},
		"Empty":          {"an empty list removes all", &image, `{"focal_points":[]}`, []*v1alpha1.FocalPoint{nil, nil}},
		"Alt texts":      {"they do not remove the points", &image, `{"alt_texts":[null,null]}`, []*v1alpha1.FocalPoint{left, nil}},
		"Video":          {"null removes it", &video, `{"focal_point":null}`, []*v1alpha1.FocalPoint{nil}},
		"Same video":     {"it keeps its point", &video, `{"media_id":"a"}`, []*v1alpha1.FocalPoint{left}},
		"Another video":  {"it has no point yet", &video, `{"media_id":"c"}`, []*v1alpha1.FocalPoint{nil}},
		"Cards":          {"a file keeps it on another card", &tree, `{"tree_cards":[{"caption":"a"},{"media_ids":["a"]}]}`, []*v1alpha1.FocalPoint{left}},
		"Point on cards": {"a card may have other points", &tree, `{"tree_cards":[{"media_ids":["a"],"focal_points":[{"x":50,"y":0}]},{"caption":"b"}]}`, []*v1alpha1.FocalPoint{right}},
	} {
		body := parse(t, tc.body)
		got := UpdatePost(body, tc.stored)
		if problems, _ := body.Problems(); len(problems) > 0 {
			t.Errorf("%s: %q", name, problems)
		}
		if diff := cmp.Diff(tc.want, points(&got.Spec)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestUpdateOfTargets checks that the remaining targets keep their language and their options until a request replaces
// them.
func TestUpdateOfTargets(t *testing.T) {
	t.Parallel()
	target := func(name, language string, options *v1alpha1.MastodonOptions) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Language: language, Mastodon: options}
	}
	private := v1alpha1.MastodonOptions{ContentWarning: "the ending", Sensitive: true, Visibility: v1alpha1.MastodonPrivate}
	without := func(edit func(*v1alpha1.MastodonOptions)) *v1alpha1.MastodonOptions {
		out := private
		edit(&out)
		return &out
	}
	direct := &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonDirect}
	stored := []v1alpha1.PostTarget{target("a", "pt-BR", &private), target("b", "", nil), target("b", "en", direct)}
	for name, tc := range map[string]struct {
		reason, targets string
		want            []v1alpha1.PostTarget
	}{
		"Absent":     {"a client that does not know them must not show the post to everyone", `{"connection_id":"a"}`, []v1alpha1.PostTarget{target("a", "pt-BR", &private)}},
		"Order":      {"they belong to the connection", `{"connection_id":"b"},{"connection_id":"a"}`, []v1alpha1.PostTarget{target("b", "", nil), target("a", "pt-BR", &private)}},
		"Twice":      {"a connection may be named twice, with different options", `{"connection_id":"b"},{"connection_id":"b"},{"connection_id":"b"}`, []v1alpha1.PostTarget{target("b", "", nil), target("b", "en", direct), target("b", "", nil)}},
		"New":        {"another account has its own", `{"connection_id":"c"}`, []v1alpha1.PostTarget{target("c", "", nil)}},
		"Language":   {"the others stay", `{"connection_id":"a","language":"de"}`, []v1alpha1.PostTarget{target("a", "de", &private)}},
		"NoLanguage": {"null clears it", `{"connection_id":"a","language":null}`, []v1alpha1.PostTarget{target("a", "", &private)}},
		"NoWarning": {"null clears it", `{"connection_id":"a","content_warning":null}`, []v1alpha1.PostTarget{
			target("a", "pt-BR", without(func(o *v1alpha1.MastodonOptions) { o.ContentWarning = "" })),
		}},
		"Opened": {"false clears it", `{"connection_id":"a","sensitive":false}`, []v1alpha1.PostTarget{
			target("a", "pt-BR", without(func(o *v1alpha1.MastodonOptions) { o.Sensitive = false })),
		}},
		"NoAudience": {"null leaves it to the account", `{"connection_id":"a","visibility":null}`, []v1alpha1.PostTarget{
			target("a", "pt-BR", without(func(o *v1alpha1.MastodonOptions) { o.Visibility = "" })),
		}},
		"Audience": {"it is replaced", `{"connection_id":"a","visibility":"public"}`, []v1alpha1.PostTarget{
			target("a", "pt-BR", without(func(o *v1alpha1.MastodonOptions) { o.Visibility = v1alpha1.MastodonPublic })),
		}},
		"None": {"all can be cleared", `{"connection_id":"a","language":"","content_warning":"","sensitive":false,"visibility":null}`, []v1alpha1.PostTarget{target("a", "", nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := parse(t, `{"targets":[`+tc.targets+`]}`)
			got := UpdatePost(body, &v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: stored})
			if problems, _ := body.Problems(); len(problems) > 0 {
				t.Errorf("%s: %q", tc.reason, problems)
			}
			if diff := cmp.Diff(tc.want, got.Spec.Targets); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			template := v1alpha1.PostTemplate{Category: v1alpha1.CategoryText, Targets: stored}
			schedule, err := UpdateSchedule(parse(t, `{"targets":[`+tc.targets+`]}`), &v1alpha1.PostScheduleSpec{Template: template})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, schedule.Template.Targets); diff != "" {
				t.Errorf("%s: a schedule (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func references(spec *v1alpha1.PostSpec) (refs []v1alpha1.MediaReference) {
	for ref := range spec.MediaReferences() {
		refs = append(refs, *ref)
	}
	return refs
}

func points(spec *v1alpha1.PostSpec) (points []*v1alpha1.FocalPoint) {
	for _, ref := range references(spec) {
		points = append(points, ref.FocalPoint)
	}
	return points
}
