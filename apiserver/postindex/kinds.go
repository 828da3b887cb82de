// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
)

// facts are what many posts have in common: those of a team mostly go to the
// same platforms.
type facts struct {
	status   v1alpha1.PostPhase
	category v1alpha1.Category
	// targets holds "platform=status" and the mark of each, separated by commas.
	targets string
	// agent is the name of the agent that made the post: a team has few.
	agent string
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
	return facts{status: s.Status, category: s.Category, targets: targets.String(), agent: s.Agent}
}

// kind is the facts that some posts share.
type kind struct {
	facts
	// platforms are the facts' targets. Pages hand them out, so they never
	// change.
	platforms []PlatformStatus
	// posts is how many posts are of this kind.
	posts int
}

// kinds numbers the facts that there are, so that an entry need not point to
// its own.
type kinds struct {
	numbers map[facts]uint32
	list    []kind
	free    []uint32
}

// acquire counts one more post of a kind, and returns the kind's number.
func (k *kinds) acquire(f facts, platforms []PlatformStatus) uint32 {
	number, known := k.numbers[f]
	if !known {
		// A platform's name is cut out of the whole post, which it would keep.
		f.status, f.category = v1alpha1.PostPhase(strings.Clone(string(f.status))), v1alpha1.Category(strings.Clone(string(f.category)))
		f.agent = strings.Clone(f.agent)
		fresh := kind{facts: f}
		for _, p := range platforms {
			fresh.platforms = append(fresh.platforms, PlatformStatus{
				Platform: v1alpha1.Platform(strings.Clone(string(p.Platform))), Status: v1alpha1.PostPhase(strings.Clone(string(p.Status))), Mark: p.Mark,
			})
		}
		if last := len(k.free) - 1; last >= 0 {
			number, k.free = k.free[last], k.free[:last]
			k.list[number] = fresh
		} else {
			number, k.list = uint32(len(k.list)), append(k.list, fresh) //nolint:gosec // at most one for each post
		}
		k.numbers[f] = number
	}
	k.list[number].posts++
	return number
}

// release counts one post less. A kind without posts is forgotten.
func (k *kinds) release(number uint32) {
	of := &k.list[number]
	of.posts--
	if of.posts > 0 {
		return
	}
	delete(k.numbers, of.facts)
	*of = kind{}
	k.free = append(k.free, number)
}

// isUndecided reports whether a person is asked about the posts of a kind.
func (k *kind) isUndecided() bool {
	return slices.ContainsFunc(k.platforms, func(p PlatformStatus) bool { return p.Mark == v1alpha1.MarkUndecided })
}

// eachFilter visits the filters that let a post through, each once, however
// many targets it has on a platform. Cancelled posts are on no list.
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
}

// eachOf visits the filters of one platform, or of all.
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
