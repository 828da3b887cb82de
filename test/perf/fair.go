// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
	"github.com/herald-social/herald/test/sandboxtest"
)

const (
	// aloneTries is how often a post is measured while others are or are not at work; the median counts.
	aloneTries = 5
	// soon is how long before its time a single post is created.
	soon = 3 * time.Second
	// slowUploads is how many films a team has uploaded at once, and slowBytes how large each is.
	slowUploads = 40
	slowBytes   = 100 << 20
	// slowChunk is how long the platform takes for each part of a film beside the time that its bytes take.
	slowChunk = time.Second
	// underWay is how long the uploads are left alone before anything is measured.
	underWay = 3 * time.Second
	// manyFaults is more often than anything is called.
	manyFaults = 1_000_000
)

// fairness is how late a post is beside others, in milliseconds.
type fairness struct {
	Alone  float64 `json:"alone_ms"`
	Beside float64 `json:"beside_ms"`
	Ratio  float64 `json:"ratio"`
}

// fair looks at what a team with one post notices of others.
type fair struct {
	*session
	report *report
	// crowd is the team that has much to do, and single the one that has not.
	crowd, single stack.Team
	films         map[string]string
	pictures      map[string][]picture
	found         map[string]any
	count         int
}

// runFair measures how late a single post is while nothing else happens, while another team has thousands due at the same
// instant, while that team uploads films to a platform that takes them slowly, and while a film goes to an account of its
// own team, or to its own account.
func runFair(ctx context.Context, s *session, r *report) error {
	if len(s.connected) < 2 {
		return errors.New("there must be two teams; set BENCH_TEAMS")
	}
	f := &fair{session: s, report: r, crowd: s.connected[0], single: s.connected[1], found: map[string]any{}, films: map[string]string{}}
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	err := f.measure(ctx)
	if err := errors.Join(err, s.stack.StopHerald()); err != nil {
		return err
	}
	r.add("FAIR", f.found)
	return nil
}

func (f *fair) measure(ctx context.Context) error {
	for team, size := range map[*stack.Team]int64{&f.crowd: slowBytes, &f.single: largest[v1alpha1.PlatformX]} {
		film, err := f.film(sources[0].file, max(min(int64(float64(size)*f.scale), size), leastFilm))
		if err != nil {
			return err
		}
		f.films[team.Namespace] = fmt.Sprintf("fair-%d", film.size())
		if _, _, err := f.apply(ctx, team.Namespace, f.films[team.Namespace], v1alpha1.MimeMP4, film); err != nil {
			return err
		}
	}
	var err error
	if f.pictures, err = f.session.pictures(ctx, []stack.Team{f.single}); err != nil {
		return err
	}
	text, scheduled, picture, err := f.alone(ctx)
	if err != nil {
		return err
	}
	if err := f.restart(ctx); err != nil {
		return err
	}
	if err := f.besideCrowd(ctx, scheduled); err != nil {
		return err
	}
	if err := f.besideUploads(ctx, scheduled, picture); err != nil {
		return err
	}
	return f.besideFilm(ctx, text)
}

// alone measures each kind of post while nothing else happens.
func (f *fair) alone(ctx context.Context) (text, scheduled, picture float64, err error) {
	text, err = f.median(ctx, f.single.Connections[0], v1alpha1.CategoryText, 0)
	if err == nil {
		scheduled, err = f.median(ctx, f.single.Connections[0], v1alpha1.CategoryText, soon)
	}
	if err == nil {
		picture, err = f.median(ctx, f.single.Connections[0], v1alpha1.CategoryImage, 0)
	}
	return text, scheduled, picture, err
}

// besideCrowd has another team's posts due at the very instant of a single post.
func (f *fair) besideCrowd(ctx context.Context, alone float64) error {
	lead := 10*time.Second + time.Duration(f.fairPosts)*firstLead
	due := time.Now().Add(lead).Truncate(time.Second)
	draw := rand.New(rand.NewPCG(1, 2))
	posts := make([]*v1alpha1.Post, f.fairPosts)
	for i := range posts {
		first, second := anyTwo(draw, len(f.crowd.Connections))
		posts[i] = duePost(f.crowd, first, second, due, fmt.Sprintf("crowd-%d", i))
	}
	// The single post comes last of all.
	if err := inParallel(ctx, posts, func(ctx context.Context, p *v1alpha1.Post) error { return f.stack.Kubernetes.Create(ctx, p) }); err != nil {
		return err
	}
	to := f.single.Connections[0]
	caption, err := f.order(ctx, to, v1alpha1.CategoryText, due)
	if err != nil {
		return err
	}
	if _, err := f.awaitNone(ctx, notScheduled); err != nil {
		return err
	}
	if time.Now().After(due) {
		return fmt.Errorf("this machine does not accept %d posts within %s; try a smaller BENCH_FAIR_POSTS", f.fairPosts, lead)
	}
	one, err := f.awaitShown(ctx, to, caption)
	if err != nil {
		return err
	}
	if _, err := f.awaitNone(ctx, notFinished); err != nil {
		return err
	}
	all, err := f.shown(ctx, []v1alpha1.Platform{v1alpha1.PlatformX})
	if err != nil {
		return err
	}
	f.add("crowd", fmt.Sprintf("lateness of a post, alone and beside %d due with it; the last of those: %.1f s", f.fairPosts, all[len(all)-1].CreatedAt.Sub(due).Seconds()),
		alone, milliseconds(one.CreatedAt.Sub(due)))
	return f.restart(ctx)
}

// besideUploads has another team upload many films, slowly, to all its accounts.
func (f *fair) besideUploads(ctx context.Context, scheduled, picture float64) error {
	before, err := f.managerMemory()
	if err != nil {
		return err
	}
	for i := range slowUploads {
		to := f.crowd.Connections[i%len(f.crowd.Connections)]
		if err := f.slowly(ctx, to); err != nil {
			return err
		}
		if _, err := f.order(ctx, to, v1alpha1.CategoryVideo, time.Time{}); err != nil {
			return err
		}
	}
	if err := f.awaitUploads(ctx); err != nil {
		return err
	}
	text, err := f.median(ctx, f.single.Connections[0], v1alpha1.CategoryText, soon)
	if err != nil {
		return err
	}
	f.add("uploads", fmt.Sprintf("lateness of a post, alone and beside %d slow uploads of another team", slowUploads), scheduled, text)
	shown, err := f.median(ctx, f.single.Connections[0], v1alpha1.CategoryImage, 0)
	if err != nil {
		return err
	}
	f.add("uploads_picture", "until a post of a picture is published, alone and beside them", picture, shown)
	after, err := f.managerMemory()
	if err != nil {
		return err
	}
	f.found["uploads_manager_mib_more"] = measure.Rounded(after-before, 1)
	f.sayf("  FAIR: meanwhile the manager took at the most %.1f MiB more than before", after-before)
	return f.restart(ctx)
}

// besideFilm has a film uploaded to an account of the same team.
func (f *fair) besideFilm(ctx context.Context, alone float64) error {
	busy := f.single.Connections[0]
	if err := f.slowly(ctx, busy); err != nil {
		return err
	}
	if _, err := f.order(ctx, busy, v1alpha1.CategoryVideo, time.Time{}); err != nil {
		return err
	}
	if err := f.awaitUploads(ctx); err != nil {
		return err
	}
	for _, way := range []struct {
		id, what string
		to       stack.Connection
	}{
		{"film_same_account", "until a text is published, alone and while a film goes slowly to its account", busy},
		{"film_other_account", "the same while the film goes to another account of its team", f.single.Connections[1]},
	} {
		beside, err := f.median(ctx, way.to, v1alpha1.CategoryText, 0)
		if err != nil {
			return err
		}
		f.add(way.id, way.what, alone, beside)
	}
	shown, err := f.stack.Sandbox.Posts(ctx, string(v1alpha1.PlatformX), busy.AccountID)
	if err != nil {
		return err
	}
	for i := range shown {
		if len(shown[i].Media) > 0 {
			return errors.New("the film was uploaded before the texts were published: nothing was measured; try a larger BENCH_SCALE")
		}
	}
	return f.restart(ctx)
}

// managerMemory is the most that the manager has taken since it was asked last, in MiB.
func (f *fair) managerMemory() (float64, error) {
	for _, p := range f.stack.Herald() {
		if p.Name == stack.Manager {
			_, peak := p.Memory()
			return inMiB(peak), p.ForgetPeak()
		}
	}
	return 0, errors.New("the manager is not started")
}

func (f *fair) add(id, what string, alone, beside float64) {
	one := fairness{Alone: alone, Beside: beside, Ratio: measure.Rounded(beside/alone, 2)}
	f.found[id] = one
	f.sayf("  FAIR: %s: %.0f ms, %.0f ms", what, alone, beside)
	f.report.rows = append(f.report.rows, row{
		id: "FAIR", what: what, floor: fmt.Sprintf("%.0f ms", alone), herald: fmt.Sprintf("%.0f ms", beside), ratio: fmt.Sprintf("%.2f", one.Ratio),
	})
}

// restart leaves nothing behind: what is under way ends with Herald.
func (f *fair) restart(ctx context.Context) error {
	err := errors.Join(f.stack.StopHerald(), f.stack.Sandbox.ClearFaults(ctx))
	if err == nil {
		err = f.clear(ctx)
	}
	if err != nil {
		return err
	}
	return f.stack.StartHerald(ctx)
}

// slowly has the platform take its time for each part of a film that goes to an account.
func (f *fair) slowly(ctx context.Context, to stack.Connection) error {
	return f.stack.Sandbox.Fault(ctx, sandboxtest.Fault{
		Platform: string(to.Platform), Operation: "upload", Kind: "delay", Times: manyFaults, Account: to.AccountID, DelayMS: int(slowChunk.Milliseconds()),
	})
}

// awaitUploads waits until the first parts of the films have come to the platform.
func (f *fair) awaitUploads(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	for {
		calls, err := f.stack.Sandbox.Calls(ctx, string(v1alpha1.PlatformX))
		if err != nil {
			return err
		}
		if calls["upload"] > 0 {
			return waitUntil(ctx, time.Now().Add(underWay))
		}
		if err := waitUntil(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// median measures single posts to an account, one after another: from their time, or from their creation without one.
func (f *fair) median(ctx context.Context, to stack.Connection, category v1alpha1.Category, ahead time.Duration) (float64, error) {
	var late []float64
	for range aloneTries {
		from, at := time.Now(), time.Time{}
		if ahead > 0 {
			from = from.Add(ahead).Truncate(time.Millisecond)
			at = from
		}
		caption, err := f.order(ctx, to, category, at)
		if err != nil {
			return 0, err
		}
		one, err := f.awaitShown(ctx, to, caption)
		if err != nil {
			return 0, err
		}
		late = append(late, milliseconds(one.CreatedAt.Sub(from)))
	}
	return measure.Median(late), nil
}

func milliseconds(d time.Duration) float64 { return measure.Rounded(float64(d.Microseconds())/1000, 1) }

// order posts something to an account through the REST API, at once if no time is given, and returns its caption.
func (f *fair) order(ctx context.Context, to stack.Connection, category v1alpha1.Category, at time.Time) (string, error) {
	f.count++
	caption := fmt.Sprintf("A post beside others, number %d", f.count)
	team := f.single
	if slices.Contains(f.crowd.Connections, to) {
		team = f.crowd
	}
	content := map[string]any{"category": category, "targets": []map[string]string{{"connection_id": to.Name, "caption": caption}}}
	if !at.IsZero() {
		content["scheduled_at"] = v1alpha1.NewTime(at).String()
	}
	switch category {
	case v1alpha1.CategoryVideo:
		content["media_id"] = f.films[team.Namespace]
	case v1alpha1.CategoryImage:
		content["media_ids"] = []string{f.pictures[team.Namespace][0].name}
	case v1alpha1.CategoryText, v1alpha1.CategoryTree:
	}
	body, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return caption, f.createByREST(ctx, team.Token, body)
}

// awaitShown waits until an account shows a post.
func (f *fair) awaitShown(ctx context.Context, to stack.Connection, caption string) (sandboxtest.Post, error) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	for {
		shown, err := f.stack.Sandbox.Posts(ctx, string(to.Platform), to.AccountID)
		if err != nil {
			return sandboxtest.Post{}, err
		}
		for i := range shown {
			if shown[i].Text == caption {
				return shown[i], nil
			}
		}
		if err := waitUntil(ctx, time.Now().Add(pollEvery)); err != nil {
			return sandboxtest.Post{}, fmt.Errorf("%q was not published to %s: %w", caption, to.Name, err)
		}
	}
}
