// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestCheckAccounts checks the results for accounts that are not among a post's targets yet.
func TestCheckAccounts(t *testing.T) {
	t.Parallel()
	thread := func(texts ...string) v1alpha1.PostSpec {
		spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{}}
		for _, of := range texts {
			spec.Tree.Cards = append(spec.Tree.Cards, v1alpha1.TreeCard{Caption: of})
		}
		return spec
	}
	pictures := func(n int) v1alpha1.PostSpec {
		spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{}}
		for range n {
			spec.Image.MediaRefs = append(spec.Image.MediaRefs, v1alpha1.MediaReference{Name: "m"})
		}
		return spec
	}
	text := v1alpha1.PostSpec{Category: v1alpha1.CategoryText}
	for name, tc := range map[string]struct {
		reason        string
		spec          v1alpha1.PostSpec
		caption       string
		account       string
		problems      []string
		count, plan   int
		readsEachOnce int
	}{
		"Fits":           {"the text has the platform's maximum length", text, "Hello", "x", nil, 0, 0, 0},
		"TooLong":        {"the text can be another one for this account", text, "Hello!", "x", nil, 6, 0, 0},
		"NoLimit":        {"the platform has no limit", text, "Hello!", "book", nil, 0, 0, 0},
		"Part":           {"the first part that is too long counts", thread("one", "too long", "much too long"), "Hello!", "x", nil, 8, 0, 0},
		"BlankText":      {"a text of blanks is sent as it is", text, "      ", "x", nil, 6, 0, 0},
		"BlankPart":      {"so is a part without files", thread("      "), "Hello!", "x", nil, 6, 0, 0},
		"Blank":          {"beside files, blanks are not sent", pictures(1), "      ", "x", nil, 0, 0, 1},
		"TooMany":        {"files cannot differ between accounts", pictures(3), "a", "x", []string{"x accepts at most 2 images"}, 0, 0, 1},
		"TooManyAndText": {"both problems are reported", pictures(3), "Hello!", "x", []string{"x accepts at most 2 images"}, 6, 0, 1},
		"Plan":           {"the plan covers the oldest accounts only", text, "a", "x", []string{"the starter plan allows 10 connected accounts"}, 0, 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := checkService()
			memory := s.Connections.Get(person.Namespace, tc.account)
			if tc.plan > 0 {
				var many []*v1alpha1.Connection
				for i := range tc.plan {
					many = append(many, account(fmt.Sprint("c", i), v1alpha1.PlatformX, i, nil))
				}
				memory = account(tc.account, v1alpha1.PlatformX, tc.plan, nil)
				s.Owner, s.Connections = starter{}.Owner, &listing{connections{memory: map[string]*v1alpha1.Connection{tc.account: memory}}, append(many, memory)}
			}
			m := &slowMedia{files: f}
			s.Media = m
			check := s.CheckPost(t.Context(), person, &tc.spec)
			got := s.CheckAccounts(t.Context(), person, &tc.spec, tc.caption, check.Previews, []*v1alpha1.Connection{memory})
			var problems []string
			for _, p := range got[0].Problems {
				problems = append(problems, p.Message)
			}
			if len(problems) != len(tc.problems) || len(problems) > 0 && problems[0][:len(tc.problems[0])] != tc.problems[0] {
				t.Errorf("%s: problems %q, want %q", tc.reason, problems, tc.problems)
			}
			if diff := cmp.Diff(tc.count, got[0].TooLong.Count); diff != "" {
				t.Errorf("%s: length:\n%s", tc.reason, diff)
			}
			if m.reads != tc.readsEachOnce {
				t.Errorf("%d files are read, want %d", m.reads, tc.readsEachOnce)
			}
		})
	}
}

// TestCheckAccountsAgreesWithCheck verifies that an account is unfit for the same reasons that a post to it would be
// rejected.
func TestCheckAccountsAgreesWithCheck(t *testing.T) {
	t.Parallel()
	s, _ := checkService()
	spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{}, Targets: saying("a", "x").Targets}
	for range 3 {
		spec.Image.MediaRefs = append(spec.Image.MediaRefs, v1alpha1.MediaReference{Name: "m"})
	}
	check := s.CheckPost(t.Context(), person, &spec)
	spec.Targets = nil
	got := s.CheckAccounts(t.Context(), person, &spec, "a", check.Previews, []*v1alpha1.Connection{s.Connections.Get(person.Namespace, "x")})
	if diff := cmp.Diff(check.Problems, got[0].Problems); diff != "" || len(check.Problems) != 1 {
		t.Errorf("with the account %+v, without it:\n%s", check.Problems, diff)
	}
}
