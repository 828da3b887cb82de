// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"strings"
)

// origin is where a post comes from and goes to. Many of a namespace's posts have the same origin.
type origin struct {
	author, agent string
	// accounts holds the connections' names, in order and separated by spaces.
	accounts string
}

func (s *Summary) origin() origin { return origin{s.Author, s.Agent, strings.Join(s.Accounts, " ")} }

// newOrigin returns an origin whose strings do not keep the post in memory.
func newOrigin(o origin) (origin, []string) {
	kept := origin{strings.Clone(o.author), strings.Clone(o.agent), strings.Clone(o.accounts)}
	return kept, strings.Fields(kept.accounts)
}

// Creators are the distinct authors and agents of a namespace's posts in the cluster, sorted.
type Creators struct{ Authors, Agents []string }

// Creators returns the creators of a namespace's posts.
func (x *Index) Creators(namespace string) Creators {
	found := x.creators(namespace)
	return Creators{distinct(found.Authors), distinct(found.Agents)}
}

// creators returns the creators of all origins, in any order.
func (x *Index) creators(namespace string) (found Creators) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.namespaces[namespace]
	if p == nil {
		return Creators{}
	}
	for i := range p.origins.list {
		of := &p.origins.list[i]
		if of.key.author != "" {
			found.Authors = append(found.Authors, of.key.author)
		}
		if of.key.agent != "" {
			found.Agents = append(found.Agents, of.key.agent)
		}
	}
	return found
}

func distinct(of []string) []string {
	slices.Sort(of)
	return slices.Compact(of)
}
