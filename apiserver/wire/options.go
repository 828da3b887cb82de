// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// The JSON fields that version 2 adds for a target's Mastodon options and for focal points. focal_points is parallel to
// media_ids, and focal_point to media_id. The names do not mention Mastodon, because the OpenAPI document must not
// mention it unless the installation supports it.
const (
	fieldContentWarning = "content_warning"
	fieldSensitive      = "sensitive"
	fieldVisibility     = "visibility"
	fieldFocalPoints    = "focal_points"
	fieldFocalPoint     = "focal_point"
)

// mastodonOptions decodes the options of a target, or returns nil if it has none.
func mastodonOptions(v strictjson.Value) *v1alpha1.MastodonOptions {
	const longestWarning = 500
	options := v1alpha1.MastodonOptions{
		ContentWarning: v.Optional(fieldContentWarning).OrNull().Text(0, longestWarning),
		Sensitive:      v.Optional(fieldSensitive).Bool(),
		Visibility: strictjson.OneOf(v.Optional(fieldVisibility).OrNull(),
			v1alpha1.MastodonPublic, v1alpha1.MastodonUnlisted, v1alpha1.MastodonPrivate, v1alpha1.MastodonDirect),
	}
	return orNone(options)
}

// mergeOptions adds the stored options that v does not set to a target's options.
func mergeOptions(v strictjson.Value, options, stored *v1alpha1.MastodonOptions) *v1alpha1.MastodonOptions {
	if stored == nil {
		return options
	}
	var out v1alpha1.MastodonOptions
	if options != nil {
		out = *options
	}
	if !v.Optional(fieldContentWarning).IsSet() {
		out.ContentWarning = stored.ContentWarning
	}
	if !v.Optional(fieldSensitive).IsSet() {
		out.Sensitive = stored.Sensitive
	}
	if !v.Optional(fieldVisibility).IsSet() {
		out.Visibility = stored.Visibility
	}
	return orNone(out)
}

// orNone returns options, or nil if none is set.
func orNone(options v1alpha1.MastodonOptions) *v1alpha1.MastodonOptions {
	if options == (v1alpha1.MastodonOptions{}) {
		return nil
	}
	return &options
}

// appendMastodon appends a target's options under the names that requests use for them.
func appendMastodon(b []byte, options *v1alpha1.MastodonOptions) []byte {
	if options == nil {
		options = &v1alpha1.MastodonOptions{}
	}
	b = appendStringOrNull(append(b, `,"content_warning":`...), options.ContentWarning)
	b = strconv.AppendBool(append(b, `,"sensitive":`...), options.Sensitive)
	return appendStringOrNull(append(b, `,"visibility":`...), string(options.Visibility))
}

// focalPoint decodes a focal point. Null stands for none.
func focalPoint(v strictjson.Value) *v1alpha1.FocalPoint {
	return strictjson.Pointer(v.OrNull(), func(v strictjson.Value) v1alpha1.FocalPoint {
		if !v.Object() {
			return v1alpha1.FocalPoint{}
		}
		return v1alpha1.FocalPoint{X: percent(v.Field("x")), Y: percent(v.Field("y"))}
	})
}

// percent decodes a coordinate, from one edge to the other.
func percent(v strictjson.Value) int32 {
	const edge = 100
	n := v.Integer(-edge)
	if n > edge {
		v.Refuse("must be at most " + strconv.Itoa(edge))
		return 0
	}
	return int32(n) //nolint:gosec // Integer refuses numbers below -edge, and the condition those above edge
}

// appendFiles appends the alt texts and the focal points of files, in their order, with null for a file that has none.
func appendFiles(b []byte, refs []v1alpha1.MediaReference) []byte {
	b = appendList(append(b, `,"alt_texts":`...), refs, func(b []byte, ref *v1alpha1.MediaReference) []byte {
		return appendStringOrNull(b, ref.AltText)
	})
	return appendList(append(b, `,"focal_points":`...), refs, func(b []byte, ref *v1alpha1.MediaReference) []byte {
		if ref.FocalPoint == nil {
			return append(b, `null`...)
		}
		b = strconv.AppendInt(append(b, `{"x":`...), int64(ref.FocalPoint.X), 10)
		b = strconv.AppendInt(append(b, `,"y":`...), int64(ref.FocalPoint.Y), 10)
		return append(b, '}')
	})
}
