// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// MaxPost is the maximum size of a new post in bytes of JSON, including its annotations, labels and owners. With it,
// the limit on the number of posts also limits a team's storage. Of the platforms, only Facebook accepts more than a
// few thousand characters, and a post to a hundred accounts has room for 2,600 each.
const MaxPost = 256 << 10

const (
	// maxObject is the maximum size of a resource in bytes of JSON: etcd rejects larger requests (the default of its
	// --max-request-bytes, 1.5 MiB).
	maxObject = 1536 << 10
	// roomAround is reserved for metadata and conditions: four conditions of at most 2,000 bytes, which may be six
	// times as large after escaping.
	roomAround = 64 << 10
	// roomPerTarget is reserved for the entry of a target: message 2 KiB, blocking reason 1.5 KiB, checkpoint 1 KiB,
	// preparation 2 KiB, addresses, ids and times 0.75 KiB, and managed fields 0.75 KiB.
	roomPerTarget = 8 << 10
	// footprintPerTarget is the share of each target in a post's Footprint, in addition to Size: the target's entry
	// and its managed fields. A posted target takes 1.2 KiB with long addresses, and each card of a tree another 180
	// bytes; test/schema stores such posts and checks these numbers. roomPerTarget covers the maximum size of a
	// target, so that a claim can always be stored.
	footprintPerTarget = 2 << 10
	// roomPerCard is reserved for the record of each card of a tree for each target: id, time and their managed
	// fields.
	roomPerCard = 256
)

// Size returns the size of a post in the Kubernetes API, in bytes of JSON. It measures texts without encoding them: a
// post that is rejected for its size may have a mebibyte of text, whose encoding would take six.
func Size(post *v1alpha1.Post) int {
	spec := post.Spec
	spec.Targets = slices.Clone(spec.Targets)
	texts := 0
	for i := range spec.Targets {
		target := &spec.Targets[i]
		target.Caption, texts = measureText(target.Caption, texts)
		if target.YouTube != nil {
			options := *target.YouTube
			options.Title, texts = measureText(options.Title, texts)
			target.YouTube = &options
		}
	}
	if spec.Tree != nil {
		tree := *spec.Tree
		tree.Cards = slices.Clone(tree.Cards)
		for i := range tree.Cards {
			tree.Cards[i].Caption, texts = measureText(tree.Cards[i].Caption, texts)
		}
		spec.Tree = &tree
	}
	return texts + encodedSize(&spec) + encodedSize(&metav1.ObjectMeta{
		Annotations: post.Annotations, Labels: post.Labels, OwnerReferences: post.OwnerReferences, Finalizers: post.Finalizers,
	})
}

// Footprint returns the bytes of a post in its team's budget: the post as written by its author, and a reserve for
// Herald's entries about its targets, so that the budget does not change during the delivery. It excludes conditions
// and other parts that each post has once, because the number of posts limits those.
func Footprint(post *v1alpha1.Post) int64 {
	perTarget := footprintPerTarget + Cards(&post.Spec)*roomPerCard
	return int64(Size(post)) + int64(len(post.Spec.Targets))*int64(perTarget)
}

// MaxStorableSize returns the maximum size of a post that leaves room for the complete record of its delivery: if a
// claim could not be stored, the post could never be sent. New posts are also limited by MaxPost.
func MaxStorableSize(post *v1alpha1.Post) int {
	targets := len(post.Spec.Targets)
	return maxObject - roomAround - targets*(roomPerTarget+Cards(&post.Spec)*roomPerCard)
}

// measureText returns a placeholder of one letter for a text, and adds to sum the difference in size. An empty text
// has an empty placeholder.
func measureText(text string, sum int) (placeholder string, more int) {
	if text == "" {
		return "", sum
	}
	return "x", sum + inJSON(text) - 1
}

// inJSON returns the size of a text within the quotes of JSON, as encoding/json writes it.
func inJSON(text string) int {
	const escape = len(`\u003c`)
	size := 0
	for i := 0; i < len(text); {
		c, width := text[i], 1
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			size += 2
		case c < ' ', c == '<', c == '>', c == '&':
			size += escape
		case c < utf8.RuneSelf:
			size++
		default:
			var r rune
			r, width = utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && width == 1 || r == '\u2028' || r == '\u2029' {
				size += escape
			} else {
				size += width
			}
		}
		i += width
	}
	return size
}

// encodedSize returns the size of a value in the API server's JSON, which writes <, > and & in six bytes each, as this
// encoder does.
func encodedSize(value any) int {
	var size counter
	if err := json.NewEncoder(&size).Encode(value); err != nil {
		return 0 // a value that cannot be encoded cannot be stored either
	}
	return int(size) - len("\n")
}

// counter counts the bytes written to it without keeping them, because a post may be large.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// TooLarge reports whether the Kubernetes API rejected an object because of its size. The error has only a message and
// no code for this.
func TooLarge(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max"))
}
