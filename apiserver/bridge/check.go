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

// Check is the live validation of a post in the editor.
type Check struct {
	// Targets are in the order of the post's targets, Cards in the order of its tree's cards.
	Targets []TargetCheck
	Cards   []CardCheck
	// Problems prevent storing the post as it is, whether as a draft or for publishing.
	Problems []Problem
	// BeforePublishing are problems that a draft may have, but that must be fixed before it is published.
	BeforePublishing []Problem
	// Warnings describe properties that a platform accepts from some accounts and may reject from others.
	Warnings []string
	// Previews show the post's files, from the data that the check has read.
	Previews *Previews
}

// TargetCheck is the check of one target.
type TargetCheck struct {
	// Platform is empty if the connection does not exist.
	Platform v1alpha1.Platform
	// Caption is the caption's length; Title is the title's length, on a platform with titles.
	Caption, Title Length
}

// CardCheck is the check of one card of a tree.
type CardCheck struct {
	// Captions are the lengths of the card's text, in the order of the targets: one for each platform, or for each account
	// on platforms whose accounts have their own limits.
	Captions []PlatformLength
}

// PlatformLength is the length of a caption on a platform.
type PlatformLength struct {
	Platform v1alpha1.Platform
	// Connection is empty where all accounts of the platform have the same rules.
	Connection string
	Length
}

// Length is the length of a caption, as counted by a platform.
type Length struct {
	Count int
	// Limit is zero if the platform has none.
	Limit int
	Unit  string
}

// characters is the default unit: Unicode code points.
const characters = "characters"

// CheckPost validates a post that a user is writing and measures its captions, by the rules that apply when it is
// stored. It does not write anything or call a platform, and assumes that an upload that has not been checked matches
// its declaration. Checks that fail to run are omitted: the validation when the post is stored is authoritative.
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

// converts reports whether video conversion is enabled for the team that owns a namespace.
func (s *Service) converts(namespace string) bool {
	team := s.Owner(namespace)
	return team != nil && team.Spec.Media.Convert
}

// problemsOf returns the first maxFieldProblems problems, and another one if the plan does not cover the accounts,
// without making a request.
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

func (s *Service) measure(check *Check, spec *v1alpha1.PostSpec, find func(string) *v1alpha1.Connection) {
	besideFiles := spec.Image != nil || spec.Video != nil
	type counting struct {
		PlatformLength

		limits platforms.Capabilities
	}
	var counted []counting
	for i := range spec.Targets {
		target := &spec.Targets[i]
		var t TargetCheck
		if connection := find(target.ConnectionRef.Name); connection != nil {
			limits, _ := s.Capabilities(connection.Spec.Platform)
			of := counting{PlatformLength: PlatformLength{Platform: connection.Spec.Platform}}
			if limits.ForAccount != nil {
				of.Connection = connection.Name
			}
			limits = limits.Of(&connection.Status).For(target)
			of.limits = limits
			t.Platform = connection.Spec.Platform
			t.Caption = captionLength(posting.TextToSend(target.Caption, besideFiles), &limits)
			t.Title = titleLength(target.YouTube, &limits)
			if !slices.ContainsFunc(counted, func(c counting) bool { return c.PlatformLength == of.PlatformLength }) {
				counted = append(counted, of)
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
		for _, of := range counted {
			of.Length = captionLength(text, &of.limits)
			c.Captions = append(c.Captions, of.PlatformLength)
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

// filesChecked limits the number of files that one check reads: a thread may refer to 2,000, and every pause in typing
// triggers a check.
const filesChecked = 200

// mediaToCheck reads each of a post's files once. A file that has not been checked, cannot be read, or is beyond
// filesChecked counts as valid.
func (s *Service) mediaToCheck(ctx context.Context, files *Previews, spec *v1alpha1.PostSpec) func(string) *v1alpha1.Media {
	post := &v1alpha1.Post{Spec: *spec}
	names := posting.Of(post).MediaNames()
	if len(rules.ValidateFiles(post)) > 0 {
		names = nil
	}
	var mu sync.Mutex
	found := map[string]*v1alpha1.Media{}
	var group errgroup.Group
	group.SetLimit(maxConcurrentChecks)
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
	_ = group.Wait() // no function returns an error
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

func assumedMedia(files *Previews, name string, category v1alpha1.Category) *v1alpha1.Media {
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: files.caller.Namespace, Name: name}, Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}
	if category == v1alpha1.CategoryVideo {
		media.Spec.MimeType = v1alpha1.MimeMP4
	}
	return media
}
