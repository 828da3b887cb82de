// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestValidateOptions(t *testing.T) {
	t.Parallel()
	private := []string{"SELF_ONLY", "FOLLOWER_OF_CREATOR"}
	for _, tt := range []struct {
		name, reason string
		can          []string
		options      *v1alpha1.TikTokOptions
		want         string
	}{
		{"draft", "it may still be chosen", private, nil, ""},
		{"draft, asked for", "it will not be chosen otherwise", private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"public account", "what is left out means public", []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY"}, nil, ""},
		{"left out", "a private account cannot choose what is meant", private, nil, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"asked for", "a private account cannot choose it", private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, "the account cannot choose PUBLIC_TO_EVERYONE; it can choose SELF_ONLY"},
		{"chosen well", "a private account can choose this one", private, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}, ""},
		{"nothing to choose", "there may be no way out", private[1:], nil, "the account cannot choose PUBLIC_TO_EVERYONE, nor any other level that a post can ask for"},
		{"inbox draft", "its owner chooses in the app", private, &v1alpha1.TikTokOptions{Draft: true}, ""},
		{"not told", "TikTok itself decides", nil, nil, ""},
		{"never examined", "TikTok itself decides", nil, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			account := &v1alpha1.ConnectionStatus{TikTok: &v1alpha1.TikTokAccount{PrivacyLevelOptions: tt.can}}
			if tt.name == "never examined" {
				account.TikTok = nil
			}
			target := &v1alpha1.PostTarget{TikTok: tt.options}
			errs := New(Config{}, nil).Capabilities().ValidateOptions(target, strings.HasPrefix(tt.name, "draft"), account, field.NewPath("spec", "targets").Index(0))
			got := ""
			if len(errs) > 0 {
				got = errs[0].Detail
				if path := "spec.targets[0].tiktok.privacyLevel"; errs[0].Field != path {
					t.Errorf("the error is at %s, want %s", errs[0].Field, path)
				}
			}
			if got != tt.want || len(errs) > 1 {
				t.Errorf("%s: got %v, want %q", tt.reason, errs, tt.want)
			}
		})
	}
}
