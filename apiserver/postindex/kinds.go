// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
)

// facts are the properties that many posts share: most of a team's posts have the same platforms.
type facts struct {
	status   v1alpha1.PostPhase
	category v1alpha1.Category
	// targets holds each target's "platform=status" and mark, separated by commas.
	targets string
	// agent is the name of the agent that created the post: a team has few.
	agent string
	// handled is Summary.Handled.
	handled bool
}

func (s *Summary) facts() facts {
	var targets strings.Builder
	for i, p := range s.Platforms {
		if i > 0 {
			targets.WriteByte(',')
		}
		targets.WriteString(string(p.Platform))
		targets.WriteByte('=')
		targets.WriteString(string(p.Status))
		targets.WriteByte('0' + byte(p.Mark))
	}
	return facts{status: s.Status, category: s.Category, targets: targets.String(), agent: s.Agent, handled: s.Handled}
}

// kind is a set of facts that several posts share.
type kind struct {
	facts

	// platforms are the parsed targets. Pages share them, so they must never change.
	platforms []PlatformStatus
}

// newKind returns a kind for a post's facts. The strings are cloned because a substring would keep the whole post in
// memory.
func newKind(f facts, platforms []PlatformStatus) (facts, kind) {
	f.status, f.category = v1alpha1.PostPhase(strings.Clone(string(f.status))), v1alpha1.Category(strings.Clone(string(f.category)))
	f.agent = strings.Clone(f.agent)
	fresh := kind{facts: f}
	for _, p := range platforms {
		fresh.platforms = append(fresh.platforms, PlatformStatus{
			Platform: v1alpha1.Platform(strings.Clone(string(p.Platform))), Status: v1alpha1.PostPhase(strings.Clone(string(p.Status))), Mark: p.Mark,
		})
	}
	return f, fresh
}

func (k *kind) isUndecided() bool {
	return slices.ContainsFunc(k.platforms, func(p PlatformStatus) bool { return p.Mark == v1alpha1.MarkUndecided })
}

// eachFilter visits each filter that matches the posts once. Cancelled posts match no filter.
func (k *kind) eachFilter(visit func(filter)) {
	if k.status == v1alpha1.PhaseCancelled {
		return
	}
	k.eachOf("", visit)
	for i, p := range k.platforms {
		again := slices.ContainsFunc(k.platforms[:i], func(q PlatformStatus) bool { return q.Platform == p.Platform })
		if p.Platform != "" && !again {
			k.eachOf(p.Platform, visit)
		}
	}
	if lists.IsBeyondVersion1(k.platforms) {
		k.eachOf(lists.BeyondVersion1, visit)
	}
}

func (k *kind) eachOf(platform v1alpha1.Platform, visit func(filter)) {
	visit(filter{platform: platform})
	visit(filter{status: k.status, platform: platform})
	switch {
	case k.isUndecided():
		visit(filter{platform: platform, undecided: OnlyUndecided})
		visit(filter{k.status, platform, OnlyUndecided})
	case splits(k.status):
		visit(filter{k.status, platform, ExcludeUndecided})
	}
}
