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

// MaxPost is the maximum size of a new post in bytes of JSON, including its annotations, labels and owners. Together
// with the limit on the number of posts it bounds a team's storage. Only Facebook accepts more than a few thousand
// characters, and a post to a hundred accounts has room for 2,600 for each.
const MaxPost = 256 << 10

const (
	// maxObject is the maximum size of a resource in bytes of JSON, the default of etcd's --max-request-bytes, 1.5 MiB.
	maxObject = 1536 << 10
	// roomAround is reserved for metadata and conditions: four conditions of at most 2,000 bytes, which escaping may
	// multiply by six.
	roomAround = 64 << 10
	// roomPerTarget is reserved for a target's entry: message 2 KiB, blocking reason 1.5 KiB, checkpoint 1 KiB,
	// preparation 2 KiB, URLs, IDs and times 0.75 KiB, and managed fields 0.75 KiB.
	roomPerTarget = 8 << 10
	// footprintPerTarget is the size that each target adds to a post's Footprint beyond Size: the target's entry and
	// its managed fields. A posted target with long URLs takes 1.2 KiB, and each card of a tree another 180 bytes;
	// test/schema checks these numbers. roomPerTarget allows for the largest target, so that a claim can always be
	// stored.
	footprintPerTarget = 2 << 10
	// roomPerCard is reserved, per target, for the record of each card of a tree: ID, time and their managed fields.
	roomPerCard = 256
)

// Size returns the size of a post in the Kubernetes API, in bytes of JSON. It measures strings without encoding them,
// because a post that is rejected may contain a mebibyte of text, which would take six when encoded.
func (v View) Size() int {
	spec := v.Post.Spec
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
	if spec.Image != nil {
		image := *spec.Image
		image.MediaRefs, texts = measureAltTexts(image.MediaRefs, texts)
		spec.Image = &image
	}
	if spec.Video != nil {
		video := *spec.Video
		video.MediaRef.AltText, texts = measureText(video.MediaRef.AltText, texts)
		spec.Video = &video
	}
	if spec.Tree != nil {
		tree := *spec.Tree
		tree.Cards = slices.Clone(tree.Cards)
		for i := range tree.Cards {
			card := &tree.Cards[i]
			card.Caption, texts = measureText(card.Caption, texts)
			card.MediaRefs, texts = measureAltTexts(card.MediaRefs, texts)
		}
		spec.Tree = &tree
	}
	return texts + encodedSize(&spec) + encodedSize(&metav1.ObjectMeta{
		Annotations: v.Post.Annotations, Labels: v.Post.Labels, OwnerReferences: v.Post.OwnerReferences, Finalizers: v.Post.Finalizers,
	})
}

// Footprint returns the number of bytes that a post uses of its team's budget: its size as the author wrote it, plus a
// reserve for Herald's entries for the targets, so that the usage does not change during delivery. Conditions and other
// data per post are not included; the limit on the number of posts covers them.
func (v View) Footprint() int64 {
	perTarget := footprintPerTarget + v.Cards()*roomPerCard
	return int64(v.Size()) + int64(len(v.Post.Spec.Targets))*int64(perTarget)
}

// MaxStorableSize returns the maximum size of a post that leaves room for its complete delivery record. A post whose
// claim cannot be stored could never be sent. New posts are also limited by MaxPost.
func (v View) MaxStorableSize() int {
	targets := len(v.Post.Spec.Targets)
	return maxObject - roomAround - targets*(roomPerTarget+v.Cards()*roomPerCard)
}

// measureText returns a one-letter placeholder for a string (none if empty), and adds the difference in size to sum.
func measureText(text string, sum int) (placeholder string, more int) {
	if text == "" {
		return "", sum
	}
	return "x", sum + inJSON(text) - 1
}

// measureAltTexts is measureText for the alt texts of references. It copies the list only if there are any.
func measureAltTexts(refs []v1alpha1.MediaReference, sum int) (placeholders []v1alpha1.MediaReference, more int) {
	hasText := func(ref v1alpha1.MediaReference) bool { return ref.AltText != "" }
	if !slices.ContainsFunc(refs, hasText) {
		return refs, sum
	}
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].AltText, sum = measureText(refs[i].AltText, sum)
	}
	return refs, sum
}

// inJSON returns the size of a string in JSON without its quotes, as encoding/json would encode it.
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

// encodedSize returns a value's size in the API server's JSON, which like this encoder escapes <, > and & as six bytes.
func encodedSize(value any) int {
	var size counter
	if err := json.NewEncoder(&size).Encode(value); err != nil {
		return 0 // a value that cannot be encoded cannot be stored either
	}
	return int(size) - len("\n")
}

// counter counts bytes without storing them, because a post may be large.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// TooLarge reports whether the Kubernetes API rejected an object because of its size. The error has a message but no
// code.
func TooLarge(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "etcdserver: request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max"))
}
