// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/sandboxtest"
)

const (
	// b11Film is the size of each video, and b11Name the name of a team's file.
	b11Film = 20 << 20
	b11Name = "film-20"
	// b11Delay is the minimum duration of each of a video's seven upload requests, which limits the rate to 2 MiB/s.
	b11Delay = 1500 * time.Millisecond
	// b11Lead is the time between the posts' creation and their due time. All uploads may start immediately.
	b11Lead = 14 * time.Minute
)

// b11Managers lists the numbers of managers, and the goals for the duration relative to one manager's.
var b11Managers = []struct {
	managers int
	goal     float64
}{{1, 1}, {2, 0.6}, {4, 0.35}}

// uploaded is B11's result for a number of managers: the medians of the rounds.
type uploaded struct {
	Managers int `json:"managers"`
	Videos   int `json:"videos"`
	// Seconds is the time from the first post's creation until the last video is uploaded.
	Seconds float64 `json:"seconds"`
	// Calls is the number of upload requests for each video, and Writes the number of writes to posts, including their
	// creation.
	Calls  float64 `json:"calls_per_video"`
	Writes float64 `json:"writes_per_video"`
	// Ratio is Seconds as a multiple of one manager's in the same round.
	Ratio float64 `json:"ratio"`
}

// b11 measures the uploads of managers that share the work.
type b11 struct {
	*session
	*content
}

func runB11(ctx context.Context, s *session, r *report, id string) error {
	b := &b11{session: s, content: s.texts()}
	if err := s.prepare(ctx, func() error { return b.upload(ctx) }); err != nil {
		return err
	}
	found := make([][]uploaded, len(b11Managers))
	for n := range s.rounds {
		for i, of := range b11Managers {
			one, err := b.round(ctx, of.managers, n)
			if err != nil {
				return fmt.Errorf("%d managers: %w", of.managers, err)
			}
			one.Ratio = one.Seconds
			if i > 0 {
				one.Ratio /= found[0][n].Seconds
			} else {
				one.Ratio = 1
			}
			s.logf("  %s round %d, managers: %d: %.1f s (%.2f), %.1f upload requests and %.2f writes per video", id, n+1, of.managers, one.Seconds, one.Ratio, one.Calls, one.Writes)
			found[i] = append(found[i], one)
		}
	}
	for i, of := range b11Managers {
		result := medianOf(found[i])
		r.add(fmt.Sprintf("%s %d", id, of.managers), result)
		r.limit(id, fmt.Sprintf("%d videos of 20 MiB due at the same time, managers: %d; %.1f upload requests and %.2f writes per video",
			result.Videos, of.managers, result.Calls, result.Writes),
			fmt.Sprintf("%.1f s (%.2f of one manager's)", result.Seconds, result.Ratio), fmt.Sprintf("≤ %.2f", of.goal), result.Ratio <= of.goal)
	}
	return nil
}

func medianOf(all []uploaded) uploaded {
	median := func(value func(*uploaded) float64) float64 {
		var values []float64
		for i := range all {
			values = append(values, value(&all[i]))
		}
		return measure.Rounded(measure.Median(values), 2)
	}
	result := all[0]
	result.Seconds = median(func(u *uploaded) float64 { return u.Seconds })
	result.Calls = median(func(u *uploaded) float64 { return u.Calls })
	result.Writes = median(func(u *uploaded) float64 { return u.Writes })
	result.Ratio = median(func(u *uploaded) float64 { return u.Ratio })
	return result
}

// upload stores a video for each team. All the team's posts use it, and it is uploaded for each post's account.
func (b *b11) upload(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(b.root, filmFolder, "faststart.mp4"))
	if err != nil {
		return err
	}
	large, err := stretch(data, b11Film)
	if err != nil {
		return err
	}
	for _, team := range b.teams {
		if _, _, err := b.apply(ctx, team.Namespace, b11Name, v1alpha1.MimeMP4, large.read(), large.size()); err != nil {
			return err
		}
	}
	return nil
}

// round uploads the videos once, with the given number of managers.
func (b *b11) round(ctx context.Context, managers, n int) (result uploaded, err error) {
	result = uploaded{Managers: managers, Videos: b.b11Videos}
	if err := b.stack.StartSharing(ctx, managers); err != nil {
		return result, err
	}
	defer func() {
		err = errors.Join(err, b.stack.StopHerald(), b.stack.Sandbox.ClearFaults(ctx))
		if err == nil {
			err = b.clear(ctx)
		}
	}()
	slow := sandboxtest.Fault{
		Platform: string(v1alpha1.PlatformX), Operation: "upload", Kind: "delay", DelayMS: int(b11Delay.Milliseconds()), Times: 100 * b.b11Videos,
	}
	if err := b.stack.Sandbox.Fault(ctx, slow); err != nil {
		return result, err
	}
	writes, calls, err := b.totals(ctx)
	if err != nil {
		return result, err
	}
	begun := time.Now()
	posts := make([]*v1alpha1.Post, b.b11Videos)
	for i := range posts {
		team := b.teams[i%len(b.teams)]
		nth := i / len(b.teams)
		posts[i] = b.post(team, nth, begun.Add(b11Lead), fmt.Sprintf("film-%d-%d-%d", managers, n, i), nth%len(team.Connections))
		posts[i].Spec.Category, posts[i].Spec.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: b11Name}}
	}
	err = inParallel(ctx, posts, func(ctx context.Context, post *v1alpha1.Post) error { return b.stack.Kubernetes.Create(ctx, post) })
	if err == nil {
		err = b.awaitPrepared(ctx)
	}
	if err != nil {
		return result, err
	}
	result.Seconds = secondsSince(begun)
	writesAfter, callsAfter, err := b.totals(ctx)
	result.Writes = measure.Rounded(writesAfter.Since(writes).Of("posts")/float64(b.b11Videos), 2)
	result.Calls = measure.Rounded(float64(callsAfter-calls)/float64(b.b11Videos), 2)
	return result, err
}

// totals returns the number of writes and of upload requests so far.
func (b *b11) totals(ctx context.Context) (writes measure.Writes, calls int, err error) {
	if writes, err = b.writes(ctx); err != nil {
		return nil, 0, err
	}
	byOperation, err := b.stack.Sandbox.Calls(ctx, string(v1alpha1.PlatformX))
	return writes, byOperation["upload"], err
}
