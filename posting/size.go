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

// MaxPost is how many bytes of JSON a new post may take, with its annotations, labels
// and owners: what a team stores is bounded by how many posts it has. Of the platforms
// only Facebook takes more than some thousand characters, and a post to a hundred
// accounts has room for 2,600 each.
const MaxPost = 256 << 10

const (
	// maxObject is how many bytes of JSON a resource may have: etcd refuses
	// more in one request (the default of its --max-request-bytes, 1.5 MiB).
	maxObject = 1536 << 10
	// roomAround is kept for metadata and conditions: four conditions of at
	// most 2,000 bytes, which escaping makes up to six times as many.
	roomAround = 64 << 10
	// roomPerTarget is kept for the entry of a target: message 2 KiB, what is in
	// the way 1.5 KiB, checkpoint 1 KiB, what was prepared 2 KiB, addresses, ids
	// and times 0.75 KiB, and what the API server records of their ownership
	// 0.75 KiB.
	roomPerTarget = 8 << 10
	// footprintPerTarget is what a post is counted for each target beside its Size: the
	// target's entry, and what the API server records of its ownership. A posted one
	// takes 1.2 KiB with long addresses, and each card of a tree 180 bytes more;
	// test/schema stores such posts and holds them to these numbers. roomPerTarget, which
	// keeps a claim from being lost, is for the worst moment of a target.
	footprintPerTarget = 2 << 10
	// roomPerCard is kept for the record of each card of a tree for each target:
	// id and time, and again their ownership.
	roomPerCard = 256
)

// Size returns how many bytes a post takes of what the Kubernetes API can store. Texts
// are counted and not encoded: a post that is refused for its size may have a mebibyte
// of them, which would take six.
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

// Footprint returns how many bytes a post is counted in its team's budget: what people
// write, and a reserve for what Herald writes of its targets, so that nothing changes of the
// budget while it is delivered. Conditions, and what else each post has once, are not in
// it: the number of posts bounds those.
func Footprint(post *v1alpha1.Post) int64 {
	perTarget := footprintPerTarget + Cards(&post.Spec)*roomPerCard
	return int64(Size(post)) + int64(len(post.Spec.Targets))*int64(perTarget)
}

// MaxStorableSize returns how many bytes a post may take so that its delivery can be recorded to
// the end: a claim that cannot be stored would keep the post from ever going out. For a
// new post MaxPost holds as well.
func MaxStorableSize(post *v1alpha1.Post) int {
	targets := len(post.Spec.Targets)
	return maxObject - roomAround - targets*(roomPerTarget+Cards(&post.Spec)*roomPerCard)
}

// measureText adds to sum what a text takes more than the one letter that stands for it
// then; an empty one stands for itself.
func measureText(text string, sum int) (placeholder string, more int) {
	if text == "" {
		return "", sum
	}
	return "x", sum + inJSON(text) - 1
}

// inJSON is how many bytes a text takes within the quotes of JSON, as encoding/json
// writes it.
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

// encodedSize is the size of a value in the API server's JSON, which like this one
// writes <, > and & in six bytes each.
func encodedSize(value any) int {
	var size counter
	if err := json.NewEncoder(&size).Encode(value); err != nil {
		return 0 // what cannot be encoded is not stored either
	}
	return int(size) - len("\n")
}

// counter counts what is written to it, and keeps nothing: a post may be large.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// TooLarge reports whether the Kubernetes API refused to store something because
// of its size. It says so in words only: nothing of the kind has a code.
func TooLarge(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max"))
}
