// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/posting/usage"
)

// caption is the text of all posts. It is as long as a typical caption.
const caption = "Our new collection is here: warm colours, soft wool and a little bit of winter sun. Come and see it in our shops, or have it sent home."

// The names of the Media for pictures and videos.
const (
	pictureName = "picture"
	videoName   = "film"
)

var media = map[string]*v1alpha1.Media{
	pictureName: {Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: pictureBytes}},
	videoName:   {Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: filmBytes}},
}

// post is a stored post, with the manager's and the platforms' data about it.
type post struct {
	*v1alpha1.Post

	team *team
	size int64
	// bytes is the size of its files.
	bytes int64
	// known contains its constant facts, and hashes its targets' content hashes.
	known  *delivery.Facts
	hashes []string
	// begun is the time at which its upload started, and ready the time at which it was complete.
	begun, ready time.Time
	// results are the unrecorded results of its last calls.
	results []delivery.Result
	// asked is its pending request for gates and a slot, granted the request that succeeded, and held the request
	// during the calls.
	asked, granted, held *turn
	// busy means that a write or a call is in progress. Until it ends, the post is not reconciled.
	busy bool
	// passes counts its reconciliations, to ignore timers set by earlier ones.
	passes int
	// shown counts how often each target was published; called records the targets whose platform has been called.
	shown  []int
	called []bool
}

// create creates the requested post, as the apiserver does.
func (s *simulation) create(r *request) {
	s.made++
	object := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.team.Name, Name: "p" + strconv.Itoa(s.made), Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(s.now).String()},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText},
	}
	switch r.kind {
	case ofText:
	case ofPicture:
		object.Spec.Category = v1alpha1.CategoryImage
		object.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: pictureName}}}
	case ofFilm:
		object.Spec.Category = v1alpha1.CategoryVideo
		object.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: videoName}}
	}
	if !r.due.IsZero() {
		object.Spec.ScheduledAt = v1alpha1.NewTimePtr(r.due)
	}
	first := s.random.IntN(len(r.team.names))
	for i := range r.targets {
		name := r.team.names[(first+i)%len(r.team.names)]
		object.Spec.Targets = append(object.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: caption})
	}
	s.admit(r.team, object)
}

// admit stores a post if its team's budget and plan allow it.
func (s *simulation) admit(tm *team, object *v1alpha1.Post) {
	size := posting.Of(object).Footprint()
	short := tm.budget.Shortage(tm.Name,
		plan.Demand{Item: v1alpha1.BudgetPosts, Used: tm.posts, More: 1}, plan.Demand{Item: v1alpha1.BudgetPostBytes, Used: tm.bytes, More: size},
		plan.Demand{Item: v1alpha1.BudgetUnfinishedPosts, Used: tm.unfinished, More: 1})
	switch {
	case short != "" && !s.broken.unlimited:
		s.result.OverBudget++
		return
	case !s.reserve(tm, object):
		s.result.OverPlan++
		return
	}
	s.result.Accepted++
	object.UID, object.Generation = types.UID(strconv.Itoa(s.result.Accepted)), 1
	object.CreationTimestamp = metav1.NewTime(s.now)
	p := &post{Post: object, team: tm, size: size, shown: make([]int, len(object.Spec.Targets)), called: make([]bool, len(object.Spec.Targets)), hashes: make([]string, len(object.Spec.Targets))}
	for name := range object.Spec.MediaReferences() {
		p.bytes += media[name.Name].Status.SizeBytes
	}
	s.open[p] = true
	tm.posts, tm.bytes, tm.unfinished = tm.posts+1, tm.bytes+size, tm.unfinished+1
	s.checkBudget(tm)
	s.result.objects(1)
	s.result.unfinished(1)
	if object.Spec.ScheduledAt != nil {
		s.result.instant(object.Spec.ScheduledAt.Time).posts++
		if p.bytes > 0 {
			s.toUpload = append(s.toUpload, p)
		}
	}
	s.at(s.server.write(s.now), func() { s.pass(p) })
}

// finish releases a finished post's share of its team's limits, and removes the post from the cluster after its
// retention.
func (s *simulation) finish(p *post) {
	delete(s.open, p)
	p.busy = true
	s.checkOutcome(p)
	p.team.unfinished--
	s.result.unfinished(-1)
	s.countersOf(p.team, p.Post, func(u *v1alpha1.Usage, _ int) {
		usage.Settle(u, plan.UsesOfStored(&u.Spec, p.Post, p.team.connection, s.settings.StartingDeadline))
	})
	if !p.team.times.Evicts(p.Labels) {
		s.result.Kept++
		return
	}
	s.weigh(p)
	tm, size := p.team, p.size
	leaves := p.Status.FinishedAt.Add(tm.times.InCluster)
	until := tm.times.ArchivedUntil(p.Post, leaves)
	s.at(leaves, func() {
		s.leaves = later(s.leaves, s.now).Add(time.Second / time.Duration(s.removals))
		s.at(s.leaves, func() {
			tm.posts, tm.bytes = tm.posts-1, tm.bytes-size
			s.server.rest += 2
			s.result.objects(-1)
			s.result.Archived++
			s.expires[int(until.Sub(s.load.Start)/day)]++
		})
	})
}

// weighedEach means that one record in a thousand is encoded, to measure its size.
const weighedEach = 1000

func (s *simulation) weigh(p *post) {
	if s.result.Accepted%weighedEach != 0 && s.result.records > 0 {
		return
	}
	data, err := record.New(p.Post, p.team.Name, func(name string) (v1alpha1.Platform, string, bool) {
		c := p.team.connection(name)
		return c.Spec.Platform, c.Spec.AccountID, true
	}).Encode()
	if err != nil {
		s.violatef("%v", err)
	}
	s.result.records++
	s.result.recordBytes += int64(len(data))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
