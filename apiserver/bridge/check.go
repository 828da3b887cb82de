// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"slices"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/rules"
)

// Check is what can be said of a post while a person writes it.
type Check struct {
	// Targets are in the order of the post's, and Cards in that of its tree's.
	Targets []TargetCheck
	Cards   []CardCheck
	// Problems keep the post from being stored as it is: as a draft, or for publishing.
	Problems []Problem
	// BeforePublishing are the problems that a draft may have, and that must be mended
	// before it is published.
	BeforePublishing []Problem
	// Warnings are what a platform may refuse, and publishes for some accounts.
	Warnings []string
	// Previews show the post's files, without reading again what the check has read.
	Previews *Previews
}

// TargetCheck is what can be said of one target.
type TargetCheck struct {
	// Platform is empty if there is no such connection.
	Platform v1alpha1.Platform
	// Caption is how long the caption is; Title, how long the title is, on a platform
	// that has one.
	Caption, Title Length
}

// CardCheck is what can be said of one card of a tree.
type CardCheck struct {
	// Captions are the lengths of its text on each platform that the post goes to, in
	// the order of the targets.
	Captions []PlatformLength
}

// PlatformLength is how long a text is for a platform.
type PlatformLength struct {
	Platform v1alpha1.Platform
	Length
}

// Length is how long a text is, as a platform counts it.
type Length struct {
	Count int
	// Limit is zero on a platform that sets none.
	Limit int
	// Unit is what is counted, in words.
	Unit string
}

// characters is the unit where no platform names one: Unicode code points.
const characters = "characters"

// CheckPost says what is wrong with a post that a person is writing, and how long its texts
// are: by the rules that hold when it is stored, but nothing is written, no platform is
// asked, and a file that was just uploaded is taken for what it is said to be. What it
// cannot find out it leaves out: what is decisive is the answer when the post is stored.
func (s *Service) CheckPost(ctx context.Context, caller Caller, spec *v1alpha1.PostSpec) Check {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace}, Spec: *spec.DeepCopy()}
	files := s.Previews(caller)
	env := rules.Env{Connection: s.inMemory(caller.Namespace), Media: s.mediaToCheck(ctx, files, spec), Capabilities: s.Capabilities, Converts: s.converts(caller.Namespace)}
	check := Check{Problems: s.problemsOf(post, env), Previews: files}
	for _, w := range rules.FileWarnings(post, env) {
		check.Warnings = append(check.Warnings, w.Message)
	}
	if spec.Draft {
		published := post.DeepCopy()
		published.Spec.Draft = false
		for _, p := range s.problemsOf(published, env) {
			if !slices.Contains(check.Problems, p) {
				check.BeforePublishing = append(check.BeforePublishing, p)
			}
		}
	}
	s.measure(&check, spec, env.Connection)
	return check
}

// converts reports whether the team of a namespace has its videos converted.
func (s *Service) converts(namespace string) bool {
	team := s.Owner(namespace)
	return team != nil && team.Spec.Media.Convert
}

// problemsOf returns what can be found without asking anyone: the first maxFieldProblems
// that the rules find, and what the plan does not cover.
func (s *Service) problemsOf(post *v1alpha1.Post, env rules.Env) []Problem {
	var errs field.ErrorList
	errs = append(errs, checkTime(post)...)
	errs = append(errs, rules.Validate(post, env)...)
	errs = append(errs, rules.ValidateTime(post, s.Clock.Now())...)
	errs = append(errs, rules.ValidateOptions(post, env)...)
	errs = errs[:min(len(errs), maxFieldProblems)]
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		problems = append(problems, problemOf(err))
	}
	if refused := s.requireCovered(post, plan.LimitsOf(s.Owner(post.Namespace)), env.Connection); refused != nil {
		problems = append(problems, Problem{Target: NoIndex, Card: NoIndex, Message: refused.Error()})
	}
	return problems
}

// measure counts the texts of a post.
func (s *Service) measure(check *Check, spec *v1alpha1.PostSpec, find func(string) *v1alpha1.Connection) {
	besideFiles := spec.Image != nil || spec.Video != nil
	type platform struct {
		name   v1alpha1.Platform
		limits platforms.Capabilities
	}
	var counted []platform
	for i := range spec.Targets {
		target := &spec.Targets[i]
		var t TargetCheck
		if connection := find(target.ConnectionRef.Name); connection != nil {
			limits, _ := s.Capabilities(connection.Spec.Platform)
			t.Platform = connection.Spec.Platform
			t.Caption = captionLength(posting.TextToSend(target.Caption, besideFiles), &limits)
			t.Title = titleLength(target.YouTube, &limits)
			if !slices.ContainsFunc(counted, func(p platform) bool { return p.name == t.Platform }) {
				counted = append(counted, platform{t.Platform, limits})
			}
		}
		check.Targets = append(check.Targets, t)
	}
	if spec.Tree == nil {
		return
	}
	for i := range spec.Tree.Cards {
		card := &spec.Tree.Cards[i]
		text := posting.TextToSend(card.Caption, len(card.MediaRefs) > 0)
		var c CardCheck
		for _, p := range counted {
			c.Captions = append(c.Captions, PlatformLength{p.name, captionLength(text, &p.limits)})
		}
		check.Cards = append(check.Cards, c)
	}
}

func captionLength(text string, limits *platforms.Capabilities) Length {
	if limits.CaptionLength == nil {
		return Length{Count: utf8.RuneCountInString(text), Unit: characters}
	}
	return Length{Count: limits.CaptionLength(text), Limit: limits.MaxCaption, Unit: limits.CaptionUnit}
}

// titleLength is zero on a platform without titles.
func titleLength(options *v1alpha1.YouTubeOptions, limits *platforms.Capabilities) Length {
	if limits.MaxTitle == 0 {
		return Length{}
	}
	title := ""
	if options != nil {
		title = options.Title
	}
	return Length{Count: limits.TitleLength(title), Limit: limits.MaxTitle, Unit: characters}
}

// filesChecked is how many files of a post one check reads: a thread may name 2,000, and a
// check is made at each pause of a person who types.
const filesChecked = 200

// mediaToCheck reads the files that a post names, each once. One whose upload is not
// examined yet, that cannot be read, or that is one of too many, is taken for good.
func (s *Service) mediaToCheck(ctx context.Context, files *Previews, spec *v1alpha1.PostSpec) func(string) *v1alpha1.Media {
	names := posting.MediaNames(spec)
	if len(rules.ValidateFiles(&v1alpha1.Post{Spec: *spec})) > 0 {
		names = nil
	}
	var mu sync.Mutex
	found := map[string]*v1alpha1.Media{}
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for i, name := range names {
		if i >= filesChecked {
			mu.Lock()
			found[name] = assumedMedia(files, name, spec.Category)
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			media := s.mediaForCheck(ctx, files, name, spec.Category)
			mu.Lock()
			defer mu.Unlock()
			found[name] = media
			return nil
		})
	}
	_ = group.Wait() // none fails
	return func(name string) *v1alpha1.Media { return found[name] }
}

func (s *Service) mediaForCheck(ctx context.Context, files *Previews, name string, category v1alpha1.Category) *v1alpha1.Media {
	read, err := files.media(ctx, name)
	switch {
	case err != nil:
		s.Log.InfoContext(ctx, "Cannot read a media file to check a post", "namespace", files.caller.Namespace, "media", name, "error", err)
		return assumedMedia(files, name, category)
	case read == nil:
		return nil
	}
	media := read.DeepCopy()
	if media.Status.Phase == "" || media.Status.Phase == v1alpha1.MediaPending {
		media.Status.Phase = v1alpha1.MediaUploaded
	}
	return media
}

// assumedMedia stands for a file that was not read.
func assumedMedia(files *Previews, name string, category v1alpha1.Category) *v1alpha1.Media {
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: files.caller.Namespace, Name: name}, Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}
	if category == v1alpha1.CategoryVideo {
		media.Spec.MimeType = v1alpha1.MimeMP4
	}
	return media
}
