// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"

	"golang.org/x/text/language"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/rules"
)

// languageIn returns an entered language in the spelling that a post may have: pt-BR for pt-br. An unknown language is
// returned as entered, so that the user sees it next to the problem.
func languageIn(typed string) string {
	const longest = 12 // the field's limit
	typed = strings.TrimSpace(typed)
	if len(typed) > longest || rules.IsLanguage(typed) {
		return typed
	}
	// Raw changes only the spelling: a language that has been renamed keeps the code that the user entered.
	if tag, err := language.Raw.Parse(typed); err == nil && rules.IsLanguage(tag.String()) {
		return tag.String()
	}
	return typed
}

// withoutUnfinishedLanguages removes invalid languages, such as one that the user is still typing. Otherwise it would
// keep the entire draft from being autosaved.
func withoutUnfinishedLanguages(spec *v1alpha1.PostSpec) {
	for i := range spec.Targets {
		if target := &spec.Targets[i]; !rules.IsLanguage(target.Language) {
			target.Language = ""
		}
	}
}
