// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// words is a caption of about the length that X allows.
var words = strings.Repeat("what we have learnt this week, ", 9)

// many fills an index with realistic posts: of every status, to one, two or all three platforms, with names and titles
// of realistic length.
func many(teams, postsEach int) *postindex.Index {
	x := postindex.New()
	listed := phases[:len(phases)-1]
	for i := range teams * postsEach {
		status := listed[i%len(listed)]
		s := postindex.Summary{
			ID: fmt.Sprintf("p%025d", i), Title: fmt.Sprintf("The first thirty characters %02d", i%100), Status: status,
			Rest: ", and those that follow it in a list of the web application", Words: words[i%len(words):],
			Author: fmt.Sprintf("oidc:person-%d@example.com", i%7), Accounts: []string{"an-account-on-x", "an-account-on-threads"},
			Category: v1alpha1.CategoryText, DisplayAt: epoch.Add(time.Duration(i) * time.Second),
		}
		for _, platform := range targetPlatforms[:1+i%len(targetPlatforms)] {
			s.Platforms = append(s.Platforms, postindex.PlatformStatus{Platform: platform, Status: status})
		}
		x.Upsert(fmt.Sprintf("team-%d", i%teams), s, uint64(i+1))
	}
	return x
}

func BenchmarkList(b *testing.B) {
	const posts, limit = 100_000, 100
	x := many(1, posts)
	for name, q := range map[string]postindex.Query{
		"First":    {Page: 1},
		"Last":     {Page: posts / limit},
		"Status":   {Page: posts / limit / 10, Status: v1alpha1.PhasePosted},
		"Platform": {Page: posts / limit / 3, Platform: v1alpha1.PlatformFacebook},
		"Both":     {Page: posts / limit / 15, Status: v1alpha1.PhasePosted, Platform: v1alpha1.PlatformFacebook},
	} {
		q.Limit = limit
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if page, _ := x.List("team-0", q); len(page) != limit {
					b.Fatalf("%d posts", len(page))
				}
			}
		})
	}
}

// BenchmarkFind measures the pages of the web application: a page of a list, and searches that scan all posts.
func BenchmarkFind(b *testing.B) {
	for _, posts := range []int{10_000, 100_000} {
		x := many(1, posts)
		for name, q := range map[string]postindex.Search{
			"Plain":    {SoonestFirst: true, Status: v1alpha1.PhaseScheduled},
			"Rare":     {Conditions: postindex.Conditions{Words: []string{"absent", "words"}}},
			"Frequent": {Conditions: postindex.Conditions{Words: []string{"learnt", "week"}, Account: "an-account-on-x"}},
		} {
			q.Limit = 25
			b.Run(fmt.Sprint(name, "/", posts), func(b *testing.B) {
				for b.Loop() {
					x.Find("team-0", &q, nil)
				}
			})
		}
	}
}

// BenchmarkDays measures a month of a calendar.
func BenchmarkDays(b *testing.B) {
	x := many(1, 10_000)
	bounds := make([]time.Time, 43)
	for i := range bounds {
		bounds[i] = epoch.Add(time.Duration(i) * 4 * time.Minute)
	}
	for b.Loop() {
		x.Days("team-0", &postindex.Search{Limit: 3}, bounds, nil)
	}
}

func BenchmarkUpsert(b *testing.B) {
	const posts = 100_000
	x := many(1, posts)
	version := uint64(posts)
	for b.Loop() {
		version++
		s := at(fmt.Sprintf("p%025d", version%posts), int(version))
		s.Status = phases[version%5]
		x.Upsert("team-0", s, version)
	}
}

// BenchmarkMemory reports the total heap memory per post.
func BenchmarkMemory(b *testing.B) {
	for name, teams := range map[string]int{"OneTeam": 1, "ThousandTeams": 1000} {
		b.Run(name, func(b *testing.B) {
			const posts = 100_000
			for b.Loop() {
				before := heap()
				x := many(teams, posts/teams)
				b.ReportMetric(float64(heap()-before)/posts, "heap-B/post")
				runtime.KeepAlive(x)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
