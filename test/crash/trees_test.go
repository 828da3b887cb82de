// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// chains are the platforms that a tree can go to.
var chains = []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads}

// tree makes a post of three cards, of which no other has the words.
func (t team) tree(ctx context.Context, words string, to ...v1alpha1.Platform) *v1alpha1.Post {
	return t.apply(ctx, func(p *v1alpha1.Post) {
		p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{}
		for i := range 3 {
			p.Spec.Tree.Cards = append(p.Spec.Tree.Cards, v1alpha1.TreeCard{Caption: fmt.Sprintf("%s, card %d of %d", words, i, serial.Add(1))})
		}
		for i := range p.Spec.Targets {
			p.Spec.Targets[i].Caption = ""
		}
	}, to...)
}

// judgeTree expects each card of a tree once on each of its accounts, hanging
// from the one before.
func (t *totals) judgeTree(ctx context.Context, tm team, p *v1alpha1.Post) {
	GinkgoHelper()
	t.posts++
	for i, target := range read(ctx, p).Status.Targets {
		t.attempts += int(target.Attempt.Number)
		on := v1alpha1.Platform(p.Spec.Targets[i].ConnectionRef.Name)
		all, err := platform.Posts(ctx, string(on), tm.accounts[on].ID)
		Expect(err).NotTo(HaveOccurred())
		before := ""
		for k, card := range p.Spec.Tree.Cards {
			n := 0
			for _, shown := range all {
				if shown.Text != card.Caption {
					continue
				}
				n++
				if shown.InReplyTo != before || k >= len(target.Cards) || target.Cards[k].ExternalID != shown.ID {
					t.lost++
					GinkgoWriter.Printf("card %d of %s on %s is %+v, target %+v\n", k, p.Name, on, shown, target)
				}
				before = shown.ID
			}
			switch {
			case n > 1:
				t.twice++
				GinkgoWriter.Printf("card %d of %s was published %d times on %s\n", k, p.Name, n, on)
			case n == 0 && target.Reason == v1alpha1.ReasonOutcomeUnknown:
				t.givenUp++
			case n == 0:
				t.lost++
				GinkgoWriter.Printf("card %d of %s is missing on %s, target %+v\n", k, p.Name, on, target)
			}
		}
	}
}

// killInTree kills a manager at a point of the first card or, if second is set,
// of the second one; done is closed when it is dead.
func killInTree(point string, second bool, m *process) (done <-chan struct{}) {
	if !second {
		return points.once(point, func() { m.kill() })
	}
	dead := make(chan struct{})
	points.once(post.PointAfterRecord, func() {
		killed := points.once(point, func() { m.kill() })
		go func() {
			<-killed
			close(dead)
		}()
	})
	return dead
}
