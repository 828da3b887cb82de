// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// validateOptions validates a target's privacy level. In a draft Post, it may be chosen later; for a draft in TikTok's
// inbox, the owner chooses it in the app.
func validateOptions(target *v1alpha1.PostTarget, draft bool, account *v1alpha1.ConnectionStatus, path *field.Path) field.ErrorList {
	options := v1alpha1.TikTokOptions{}
	if target.TikTok != nil {
		options = *target.TikTok
	}
	if account.TikTok == nil || options.Draft || draft && options.PrivacyLevel == "" {
		return nil
	}
	wanted := privacy(&options)
	instead, ok := available(wanted, account.TikTok.PrivacyLevelOptions)
	if ok {
		return nil
	}
	problem := fmt.Sprintf("the account cannot choose %s, nor any other level that a post can ask for", wanted)
	if len(instead) > 0 {
		problem = fmt.Sprintf("the account cannot choose %s; it can choose %s", wanted, strings.Join(instead, ", "))
	}
	return field.ErrorList{field.Invalid(path.Child("tiktok", "privacyLevel"), string(wanted), problem)}
}

func checkLevel(wanted v1alpha1.TikTokPrivacyLevel, levels []string) *platforms.Error {
	instead, ok := available(wanted, levels)
	switch {
	case ok:
		return nil
	case len(instead) == 0:
		return platforms.Errorf(platforms.ClassPermanent, "this account cannot choose the privacy level %s, nor any other level that a post can request", wanted)
	default:
		return platforms.Errorf(platforms.ClassPermanent, "this account cannot choose the privacy level %s", wanted).
			Advise("post again with tiktok.privacyLevel " + strings.Join(instead, " or "))
	}
}

// available reports whether an account allows a privacy level, and returns the levels that a post can use instead. If
// the levels of an account are unknown, every level is available: TikTok itself decides.
func available(wanted v1alpha1.TikTokPrivacyLevel, levels []string) (instead []string, ok bool) {
	if len(levels) == 0 || slices.Contains(levels, string(wanted)) {
		return nil, true
	}
	for _, level := range []v1alpha1.TikTokPrivacyLevel{v1alpha1.TikTokPublicToEveryone, v1alpha1.TikTokSelfOnly} {
		if slices.Contains(levels, string(level)) {
			instead = append(instead, string(level))
		}
	}
	return instead, false
}

func privacy(options *v1alpha1.TikTokOptions) v1alpha1.TikTokPrivacyLevel {
	return cmp.Or(options.PrivacyLevel, v1alpha1.TikTokPublicToEveryone)
}

// isPublic reports whether everyone can see the post. It then gets a public address.
func isPublic(content *platforms.Content) bool {
	return !content.TikTok.Draft && privacy(&content.TikTok) == v1alpha1.TikTokPublicToEveryone
}

func allowed(option *bool) bool { return option == nil || *option }
