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
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// goalIdle is what manager and apiserver may each take without posts, in MiB.
const goalIdle = 64.0

const (
	// idleWindow is how long what a process takes at rest is watched: longer than two minutes, after which Go collects
	// garbage in any case.
	idleWindow = 150 * time.Second
	// idleEvery paces that.
	idleEvery = 500 * time.Millisecond
)

// idle is what a process takes while there is nothing to do, in MiB, as the kernel counts it: the most during idleWindow.
type idle struct {
	Resident float64 `json:"resident_mib"`
	// Anonymous is the part that is the process's own. The rest are pages of the program's file, which all processes that
	// run it share, and which the kernel takes back when it needs room.
	Anonymous float64 `json:"anonymous_mib"`
	// Shared is the resident memory with what several processes share divided between them.
	Shared float64 `json:"proportional_mib"`
}

// runB5 looks at what both processes take of memory while there are no posts, and while a film as large as any goes to a
// platform.
func runB5(ctx context.Context, s *session, r *report) (err error) {
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stack.StopHerald()) }()
	idles, err := s.idle(ctx)
	if err != nil {
		return err
	}
	var most float64
	for _, name := range []string{stack.Manager, stack.APIServer} {
		most = max(most, idles[name].Resident)
		s.sayf("  B5: %s without posts: %.1f MiB, of which %.1f are its own; %.1f with what is shared divided",
			name, idles[name].Resident, idles[name].Anonymous, idles[name].Shared)
		r.limit("B5", name+"'s memory without posts", fmt.Sprintf("%.1f MiB", idles[name].Resident), fmt.Sprintf("≤ %.0f MiB", goalIdle),
			idles[name].Resident <= goalIdle)
	}
	u := &uploads{session: s, team: s.connected[0]}
	one, size, err := u.toPlatform(ctx)
	if err != nil {
		return err
	}
	more := max(one.More[stack.Manager], one.More[stack.APIServer])
	for _, name := range []string{stack.Manager, stack.APIServer} {
		r.limit("B5", fmt.Sprintf("%s's memory while a film of %.0f MiB goes to %s", name, inMiB(size), s.filmTo),
			fmt.Sprintf("%.1f MiB more", one.More[name]), fmt.Sprintf("≤ %.0f MiB", goalUpload), one.More[name] <= goalUpload)
	}
	r.add("B5", map[string]any{
		"idle_mib": most, "idle_goal": goalIdle, "idle_met": most <= goalIdle, "idle": idles, "connections": s.connections,
		"upload_mib_more": more, "upload_goal": goalUpload, "upload_met": more <= goalUpload,
		"platform": s.filmTo, "bytes": size, "before": u.before, "upload": one,
	})
	return nil
}

// idle waits until both processes are at rest and returns the most that each takes from then on.
func (s *session) idle(ctx context.Context) (map[string]idle, error) {
	found := map[string]idle{}
	for _, p := range s.stack.Herald() {
		if _, err := s.least(ctx, p); err != nil {
			return nil, err
		}
	}
	for begun := time.Now(); time.Since(begun) < time.Duration(float64(idleWindow)*min(s.scale, 1)); {
		if err := waitUntil(ctx, time.Now().Add(idleEvery)); err != nil {
			return nil, err
		}
		for _, p := range s.stack.Herald() {
			now, _ := p.Memory()
			anonymous, shared := p.MemoryParts()
			most := found[p.Name]
			found[p.Name] = idle{
				Resident: max(most.Resident, inMiB(now)), Anonymous: max(most.Anonymous, inMiB(anonymous)), Shared: max(most.Shared, inMiB(shared)),
			}
		}
	}
	return found, nil
}

// largest is how large a film a platform takes at most.
var largest = map[v1alpha1.Platform]int64{
	v1alpha1.PlatformYouTube: v1alpha1.MaxVideoBytes,
	v1alpha1.PlatformX:       512 << 20,
}

// toPlatform uploads a film and has it published, and looks at what both take of memory meanwhile.
func (u *uploads) toPlatform(ctx context.Context) (one uploaded, size int64, err error) {
	platform := v1alpha1.Platform(u.filmTo)
	if u.connection, err = u.stack.ConnectTo(ctx, platform, u.team.Namespace, "1700000000"); err != nil {
		return one, 0, err
	}
	size = min(largest[platform], u.filmBytes)
	large, err := u.film(sources[0].file, size)
	if err != nil {
		return one, size, err
	}
	if u.before, err = u.resting(ctx); err != nil {
		return one, size, err
	}
	one, err = u.watched(ctx, large, func(ctx context.Context, f film) (uploaded, error) { return u.published(ctx, f, platform) })
	if err != nil {
		return one, size, err
	}
	one.Film, one.Way = sources[0].name, string(platform)
	u.sayf("  B5: a film of %.0f MiB to %s: sent in %.1f s, published %.1f s after; MiB more at the most: %v resident, %v of the heap",
		inMiB(size), platform, one.Put, one.Published, one.More, one.HeapMore)
	return one, size, nil
}

// published sends a film, posts it at once, and waits until the platform shows it whole.
func (u *uploads) published(ctx context.Context, f film, platform v1alpha1.Platform) (one uploaded, err error) {
	id, sent, err := u.send(ctx, f)
	if err != nil {
		return one, err
	}
	one.Put = sent
	begun := time.Now()
	if err := u.post(ctx, id, time.Time{}); err != nil {
		return one, err
	}
	one.Verified = secondsSince(begun)
	if _, err := u.awaitNone(ctx, notFinished); err != nil {
		return one, err
	}
	one.Published = secondsSince(begun)
	if left, err := u.first(ctx, notPosted); err != nil || left != "" {
		return one, errors.Join(err, u.whyNot(ctx))
	}
	shown, err := u.stack.Sandbox.Posts(ctx, string(platform), u.connection.AccountID)
	if err != nil {
		return one, err
	}
	if len(shown) != 1 || len(shown[0].Media) != 1 || shown[0].Media[0].Bytes != f.size() {
		return one, fmt.Errorf("one film of %d bytes was posted, and the platform shows %+v", f.size(), shown)
	}
	return one, nil
}

// whyNot is what is said of the posts that were not posted.
func (s *session) whyNot(ctx context.Context) error {
	var list v1alpha1.PostList
	err := s.stack.Kubernetes.List(ctx, &list)
	for i := range list.Items {
		for _, t := range list.Items[i].Status.Targets {
			if t.Phase != v1alpha1.PhasePosted {
				err = errors.Join(err, fmt.Errorf("%s was not published to %s: %s: %s", list.Items[i].Name, t.Platform, t.Reason, t.Message))
			}
		}
	}
	return err
}

// film makes a small film of Herald's tests one of a size.
func (s *session) film(name string, size int64) (film, error) {
	data, err := os.ReadFile(filepath.Join(s.root, filmFolder, name))
	if err != nil {
		return film{}, err
	}
	return stretch(data, size)
}
