// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"os"
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/realplatforms"
)

// everywhere is the suite's platform order. An earlier version of Herald may not have the platforms that version 1 of the
// API lacks.
var everywhere = slices.DeleteFunc(v1alpha1.Platforms(), func(p v1alpha1.Platform) bool {
	return os.Getenv("PREVIOUS_BUILD") != "" && !p.InVersion1()
})

// registry has each platform's capabilities.
var registry = realplatforms.All()

// kind is the content of a post, as far as it matters for delivery.
type kind struct {
	name     string
	category v1alpha1.Category
	// files are the file names of the post or of each tree card.
	files [][]string
	// inbox marks posts to an inbox, which have no text.
	inbox bool
}

// The kinds of posts.
var (
	aText     = &kind{name: "text", category: v1alpha1.CategoryText}
	aPicture  = &kind{name: "image", category: v1alpha1.CategoryImage, files: [][]string{{"red"}}}
	aCarousel = &kind{name: "carousel", category: v1alpha1.CategoryImage, files: [][]string{{"red", "blue"}}}
	aFilm     = &kind{name: "video", category: v1alpha1.CategoryVideo, files: [][]string{{"film"}}}
	aLongFilm = &kind{name: "video in parts", category: v1alpha1.CategoryVideo, files: [][]string{{"long"}}}
	aDraft    = &kind{name: "inbox draft", category: v1alpha1.CategoryVideo, files: [][]string{{"film"}}, inbox: true}
	aTree     = &kind{name: "tree", category: v1alpha1.CategoryTree, files: [][]string{nil, nil, nil}}
	aFullTree = &kind{name: "tree with files", category: v1alpha1.CategoryTree, files: [][]string{{"red"}, nil, {"film"}}}
	kinds     = []*kind{aText, aPicture, aCarousel, aFilm, aLongFilm, aDraft, aTree, aFullTree}
)

// goesTo reports whether a platform accepts the kind.
func (k *kind) goesTo(to v1alpha1.Platform) bool {
	limits := registry[to].Capabilities()
	withFiles := len(slices.Concat(k.files...)) > 0
	return limits.CanDeliver(k.category) && (!k.inbox || to == v1alpha1.PlatformTikTok) &&
		(!withFiles || k.category != v1alpha1.CategoryTree || limits.CanDeliver(v1alpha1.CategoryImage))
}

// targets returns the platforms that accept the kind.
func (k *kind) targets() []v1alpha1.Platform {
	return slices.DeleteFunc(slices.Clone(everywhere), func(p v1alpha1.Platform) bool { return !k.goesTo(p) })
}

// prepares reports whether the kind must be prepared before it is published.
func (k *kind) prepares(to v1alpha1.Platform) bool {
	preparer, ok := registry[to].(platforms.Preparer)
	content := platforms.Content{Category: k.category}
	for _, name := range slices.Concat(k.files...) {
		content.Media = append(content.Media, platforms.File{Name: name, MIMEType: mimeTypes[name], Size: 1})
	}
	return ok && preparer.Prepares(content)
}

// pair is a kind of post on a platform.
type pair struct {
	*kind
	to v1alpha1.Platform
}

// pairs returns all combinations that can be delivered.
func pairs() (out []pair) {
	for _, k := range kinds {
		for _, to := range k.targets() {
			out = append(out, pair{k, to})
		}
	}
	return out
}

// public returns the pairs without a daily limit.
func public() []pair {
	return slices.DeleteFunc(pairs(), func(p pair) bool { return p.kind == aDraft })
}

// connected returns the platforms that accept any kind.
func connected() []v1alpha1.Platform {
	return slices.DeleteFunc(slices.Clone(everywhere), func(p v1alpha1.Platform) bool { return len(registry[p].Capabilities().Delivers) == 0 })
}

func (k *kind) refs(part int) (out []v1alpha1.MediaReference) {
	if part < len(k.files) {
		for _, name := range k.files[part] {
			out = append(out, v1alpha1.MediaReference{Name: name})
		}
	}
	return out
}

// fill sets a post's content for this kind. words must be unique.
func (k *kind) fill(p *v1alpha1.Post, words string) {
	p.Spec.Category = k.category
	switch k.category {
	case v1alpha1.CategoryImage:
		p.Spec.Image = &v1alpha1.ImageContent{MediaRefs: k.refs(0)}
	case v1alpha1.CategoryVideo:
		p.Spec.Video = &v1alpha1.VideoContent{MediaRef: k.refs(0)[0]}
	case v1alpha1.CategoryTree:
		p.Spec.Tree = &v1alpha1.TreeContent{}
		for i := range k.files {
			p.Spec.Tree.Cards = append(p.Spec.Tree.Cards, v1alpha1.TreeCard{Caption: card(words, i), MediaRefs: k.refs(i)})
		}
		return
	case v1alpha1.CategoryText:
	}
	for i := range p.Spec.Targets {
		target := &p.Spec.Targets[i]
		target.Caption = words
		if target.ConnectionRef.Name == string(v1alpha1.PlatformYouTube) {
			target.YouTube = &v1alpha1.YouTubeOptions{Title: title(words)}
		}
		if target.ConnectionRef.Name == string(v1alpha1.PlatformTikTok) {
			target.TikTok = &v1alpha1.TikTokOptions{Draft: k.inbox}
		}
	}
}
