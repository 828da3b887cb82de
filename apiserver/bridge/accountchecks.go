// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/rules"
)

// AccountCheck is the result of checking whether an account can take the post in the editor.
type AccountCheck struct {
	// Problems are the reasons why the account cannot take the post, regardless of its text: the account's platform does
	// not accept the files, or the plan does not cover it.
	Problems []Problem
	// TooLong is the length of the first text that exceeds the platform's limit; zero if there is none.
	TooLong Length
}

// CheckAccounts checks which accounts can take a post's content. caption is the text for an account without its own.
// files is from CheckPost of the same post, so that each file is read once.
func (s *Service) CheckAccounts(ctx context.Context, caller Caller, spec *v1alpha1.PostSpec, caption string, files *Previews, accounts []*v1alpha1.Connection) []AccountCheck {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace}, Spec: *spec}
	env := rules.Env{Connection: s.inMemory(caller.Namespace), Media: s.mediaToCheck(ctx, files, spec), Capabilities: s.Capabilities, Converts: s.converts(caller.Namespace)}
	limits := plan.LimitsOf(s.Owner(caller.Namespace))
	checks := make([]AccountCheck, len(accounts))
	for i, errs := range rules.UnfitFiles(post, env, accounts) {
		to := &v1alpha1.Post{ObjectMeta: post.ObjectMeta, Spec: v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: accounts[i].Name}}}}}
		if refused := s.requireCovered(to, limits, env.Connection); refused != nil {
			checks[i].Problems = append(checks[i].Problems, Problem{Target: NoIndex, Card: NoIndex, Message: refused.Error()})
		}
		for _, err := range errs[:min(len(errs), maxFieldProblems)] {
			checks[i].Problems = append(checks[i].Problems, problemOf(err))
		}
		of, _ := s.Capabilities(accounts[i].Spec.Platform)
		of = of.Of(&accounts[i].Status)
		checks[i].TooLong = tooLong(spec, caption, &of)
	}
	return checks
}

// tooLong returns the length of the first text that a platform does not accept.
func tooLong(spec *v1alpha1.PostSpec, caption string, limits *platforms.Capabilities) Length {
	if limits.MaxCaption == 0 {
		return Length{}
	}
	texts := []string{posting.TextToSend(caption, spec.Image != nil || spec.Video != nil)}
	if spec.Tree != nil {
		texts = nil
		for i := range spec.Tree.Cards {
			card := &spec.Tree.Cards[i]
			texts = append(texts, posting.TextToSend(card.Caption, len(card.MediaRefs) > 0))
		}
	}
	for _, text := range texts {
		if length := captionLength(text, limits); length.Count > length.Limit {
			return length
		}
	}
	return Length{}
}
