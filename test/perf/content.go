// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// The first account numbers, in the platforms' formats.
const (
	firstX       = 1_800_000_000
	firstYouTube = 1_700_000_000
	firstThreads = 17_800_000_000_000_000
)

// content is the content that a benchmark posts: text to accounts on X, or images to accounts on X and Threads.
type content struct {
	// teams are the teams that post. Each team's accounts are ordered by platform, with the same number on each
	// platform.
	teams     []stack.Team
	platforms []v1alpha1.Platform
	// images are the posts' pictures, by namespace; there are none for text posts. They are uploaded to the platforms
	// before the posts are due.
	images map[string][]picture
	// lead and restLead are the times, per post of a round, that posts are created before their due time, through the
	// Kubernetes API and through REST. Pictures are uploaded in this time.
	lead, restLead time.Duration
	// sampleLead is the time between a sample's creation and its due time, long enough to prepare it.
	sampleLead time.Duration
}

// picture is a team's file and the URL to read it from.
type picture struct {
	name, address string
	bytes         int64
}

// contentOf returns the content that a benchmark posts. Herald must be running.
func (s *session) contentOf(ctx context.Context, id string) (*content, error) {
	if id == "B2M" || id == "B3M" {
		return s.pictures(ctx)
	}
	return s.texts(), nil
}

func (s *session) texts() *content {
	return &content{
		teams: s.connected, platforms: []v1alpha1.Platform{v1alpha1.PlatformX},
		lead: 12 * time.Millisecond, restLead: 30 * time.Millisecond, sampleLead: 2 * time.Second,
	}
}

// pictures connects an account on Threads for every second account on X, uploads all teams' pictures, and waits until
// the manager has verified them. Later calls return the same content. Herald must be running.
func (s *session) pictures(ctx context.Context) (*content, error) {
	if s.pictured != nil {
		return s.pictured, nil
	}
	c := &content{
		platforms: []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads}, images: map[string][]picture{},
		lead: 60 * time.Millisecond, restLead: 150 * time.Millisecond, sampleLead: 8 * time.Second,
	}
	files, err := s.stack.Store()
	if err != nil {
		return nil, err
	}
	for t, team := range s.connected {
		half := max(len(team.Connections)/2, 1)
		threads, err := s.stack.Connect(ctx, v1alpha1.PlatformThreads, team.Namespace, firstThreads+t*half, half)
		if err != nil {
			return nil, err
		}
		team.Connections = slices.Concat(team.Connections[:half], threads)
		c.teams = append(c.teams, team)
		if c.images[team.Namespace], err = s.uploadPictures(ctx, files, team.Namespace, uint64(t*picturesPerTeam)); err != nil {
			return nil, err
		}
	}
	s.pictured = c
	return c, nil
}

// uploadPictures uploads picturesPerTeam pictures for a team, drawn from successive seeds.
func (s *session) uploadPictures(ctx context.Context, files *store.Store, namespace string, seed uint64) ([]picture, error) {
	var pictures []picture
	for i := range picturesPerTeam {
		p, err := s.uploadPicture(ctx, files, namespace, i, seed+uint64(i))
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, p)
	}
	return pictures, nil
}

// uploadPicture uploads one of a team's pictures.
func (s *session) uploadPicture(ctx context.Context, files *store.Store, namespace string, nth int, seed uint64) (picture, error) {
	drawn, err := drawPicture(seed)
	if err != nil {
		return picture{}, err
	}
	p := picture{name: fmt.Sprintf("picture-%d", nth), bytes: int64(len(drawn))}
	if _, _, err := s.apply(ctx, namespace, p.name, v1alpha1.MimeJPEG, bytes.NewReader(drawn), p.bytes); err != nil {
		return p, err
	}
	var media v1alpha1.Media
	if err := s.stack.Kubernetes.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.name}, &media); err != nil {
		return p, err
	}
	p.address, err = files.PresignGet(ctx, store.Key(&media), farAhead)
	return p, err
}

// two picks two random accounts of a team: one on each platform, or any two if there is only one platform.
func (c *content) two(draw *rand.Rand, team stack.Team) (first, second int) {
	accounts := len(team.Connections)
	if len(c.platforms) > 1 {
		return draw.IntN(accounts / 2), accounts/2 + draw.IntN(accounts/2)
	}
	first = draw.IntN(accounts)
	return first, (first + 1 + draw.IntN(accounts-1)) % accounts
}

// picture returns the picture of a team's nth post, or "" for a text post.
func (c *content) picture(team stack.Team, nth int) string {
	of := c.images[team.Namespace]
	if len(of) == 0 {
		return ""
	}
	return of[nth%len(of)].name
}

// post returns a post to some of a team's accounts, as Herald's apiserver would create it.
func (c *content) post(team stack.Team, nth int, at time.Time, name string, accounts ...int) *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team.Namespace, GenerateName: "p",
			Labels:      map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Annotations: map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now()).String()},
			Finalizers:  []string{v1alpha1.DeliveryFinalizer},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(at)},
	}
	if shown := c.picture(team, nth); shown != "" {
		addPicture(post, shown)
	}
	for _, connection := range accounts {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
			ConnectionRef: v1alpha1.LocalReference{Name: team.Connections[connection].Name},
			Caption:       "A benchmark's post to two accounts, as long as such posts are: " + name,
		})
	}
	return post
}

// addPicture turns a post into an image post.
func addPicture(post *v1alpha1.Post, name string) {
	post.Spec.Category = v1alpha1.CategoryImage
	post.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: name}}}
}
