// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TikTokPrivacy returns what is wrong with the privacy levels that a post asks
// for on TikTok, PUBLIC_TO_EVERYONE where it asks for none: each must be one
// that the account can choose, as its Connection tells. It is apart from
// Validate because the HTTP service has an error code of its own for it. An
// account that has not told its levels is passed over: TikTok itself decides.
func TikTokPrivacy(post *v1alpha1.Post, env Env) field.ErrorList {
	var errs field.ErrorList
	for i := range post.Spec.Targets {
		target := &post.Spec.Targets[i]
		conn := env.connection(target.ConnectionRef.Name)
		if conn == nil || conn.Spec.Platform != v1alpha1.PlatformTikTok || conn.Status.TikTok == nil {
			continue
		}
		if target.TikTok != nil && target.TikTok.Draft {
			continue // its owner chooses in the app
		}
		options := conn.Status.TikTok.PrivacyLevelOptions
		wanted := v1alpha1.TikTokPublicToEveryone
		if target.TikTok != nil && target.TikTok.PrivacyLevel != "" {
			wanted = target.TikTok.PrivacyLevel
		}
		if len(options) == 0 || slices.Contains(options, string(wanted)) {
			continue
		}
		errs = append(errs, field.Invalid(
			field.NewPath("spec", "targets").Index(i).Child("tiktok", "privacyLevel"), string(wanted), choose(wanted, options)))
	}
	return errs
}

// choose says what can be asked for instead.
func choose(wanted v1alpha1.TikTokPrivacyLevel, options []string) string {
	var can []string
	for _, level := range []v1alpha1.TikTokPrivacyLevel{v1alpha1.TikTokPublicToEveryone, v1alpha1.TikTokSelfOnly} {
		if slices.Contains(options, string(level)) {
			can = append(can, string(level))
		}
	}
	if len(can) == 0 {
		return fmt.Sprintf("the account cannot choose %s, nor any other level that a post can ask for", wanted)
	}
	return fmt.Sprintf("the account cannot choose %s; it can choose %s", wanted, strings.Join(can, ", "))
}
