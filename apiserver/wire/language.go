// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/posting/rules"
)

// The field of version 2 for the language of a target's text.
const fieldLanguage = "language"

// targetReaderV2 is targetReader for version 2.
func targetReaderV2(category v1alpha1.Category, problems *[]string) func(strictjson.Value) v1alpha1.PostTarget {
	target := targetReader(category, problems)
	return func(v strictjson.Value) v1alpha1.PostTarget {
		out := target(v)
		if out.ConnectionRef.Name != "" { // otherwise it may not be an object
			out.Language = language(v.Optional(fieldLanguage))
			out.Mastodon = mastodonOptions(v)
		}
		return out
	}
}

// targetUpdater is targetReaderV2 for the targets that replace stored ones. Where a target lacks fields that version 1
// does not have, it keeps those of the stored target with the same connection: a client that does not know these fields
// could otherwise show the post to more people than before.
func targetUpdater(stored []v1alpha1.PostTarget, category v1alpha1.Category, problems *[]string) func(strictjson.Value) v1alpha1.PostTarget {
	target, left := targetReaderV2(category, problems), slices.Clone(stored)
	return func(v strictjson.Value) v1alpha1.PostTarget {
		out := target(v)
		// A post may name a connection more than once, so each stored target is used for only one of the new targets.
		i := slices.IndexFunc(left, func(t v1alpha1.PostTarget) bool { return t.ConnectionRef == out.ConnectionRef })
		if i < 0 || out.ConnectionRef.Name == "" {
			return out
		}
		if !v.Optional(fieldLanguage).IsSet() {
			out.Language = left[i].Language
		}
		out.Mastodon = mergeOptions(v, out.Mastodon, left[i].Mastodon)
		left = slices.Delete(left, i, i+1)
		return out
	}
}

// language decodes a language. Null and "" stand for none.
func language(v strictjson.Value) string {
	const longest = 12
	tag := v.OrNull().Text(0, longest)
	if tag != "" && !rules.IsLanguage(tag) {
		v.Refuse("must be the tag of a language, such as en, pt-BR or zh-Hant")
	}
	return tag
}

// appendTarget appends the members of a target that version 1 does not have.
func appendTarget(b []byte, target *v1alpha1.PostTarget) []byte {
	b = appendTikTok(b, target.TikTok)
	b = appendStringOrNull(append(b, `,"language":`...), target.Language)
	return appendMastodon(b, target.Mastodon)
}
