// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

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
