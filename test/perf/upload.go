// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// goalUpload is how much more memory manager and apiserver may each take while a film is uploaded and verified, in MiB.
const goalUpload = 32.0

const (
	// filmFolder has the small films that large ones are made of.
	filmFolder = "internal/media/probe/testdata"
	// leastFilm is the size of a film in a run that is scaled down to nothing, in bytes.
	leastFilm = 1 << 20
)

// uploaded is what one upload took. Times are in seconds.
type uploaded struct {
	Film string  `json:"film"`
	Way  string  `json:"way"`
	Put  float64 `json:"put_s"`
	// Verified is from the end of the upload: until POST /posts has answered, or until the Media says what it is.
	Verified float64 `json:"verified_s"`
	// Published is how long after the upload the platform showed it, if it was to.
	Published float64 `json:"published_s,omitempty"`
	// More is how much more resident memory each process had at the most than before all uploads, in MiB, and HeapMore how
	// much more its heap held, garbage included, whenever it was asked.
	More     map[string]float64 `json:"mib_more"`
	HeapMore map[string]float64 `json:"heap_mib_more"`
}

type uploads struct {
	*session
	team       stack.Team
	connection stack.Connection
	before     map[string]resting
}

// sources are the small films that large ones are made of: one as it is made for the web, and one as cameras write it.
var sources = []struct{ name, file string }{{"index first", "faststart.mp4"}, {"index last", "tail.mp4"}}

// runUpload uploads films as large as any may be, through REST with a post that follows at once, which the apiserver
// verifies the film for, and for a Media that was applied, which the manager verifies.
func runUpload(ctx context.Context, s *session, r *report) (err error) {
	if err := s.stack.StartHerald(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stack.StopHerald()) }()
	u := &uploads{session: s, team: s.connected[0]}
	if u.connection, err = s.stack.ConnectTo(ctx, v1alpha1.PlatformYouTube, u.team.Namespace, "bench"); err != nil {
		return err
	}
	if u.before, err = u.resting(ctx); err != nil {
		return err
	}
	var all []uploaded
	for _, source := range sources {
		large, err := u.film(source.file, u.filmBytes)
		if err != nil {
			return err
		}
		for _, way := range []struct {
			name string
			send func(context.Context, film) (uploaded, error)
		}{{"REST", u.byREST}, {"kubectl", u.byMedia}} {
			one, err := u.watched(ctx, large, way.send)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", way.name, source.name, err)
			}
			one.Film, one.Way = source.name, way.name
			all = append(all, one)
			s.sayf("  UPLOAD: %s, %s: sent in %.1f s, verified after %.2f s; MiB more at the most: %v resident, %v of the heap",
				one.Way, one.Film, one.Put, one.Verified, one.More, one.HeapMore)
		}
	}
	after, err := u.resting(ctx)
	if err != nil {
		return err
	}
	u.report(r, all, after)
	return nil
}

func (u *uploads) report(r *report, all []uploaded, after map[string]resting) {
	most := map[string]float64{}
	for _, one := range all {
		for name, more := range one.More {
			most[name] = max(most[name], more)
		}
	}
	met := most[stack.Manager] <= goalUpload && most[stack.APIServer] <= goalUpload
	r.add("UPLOAD", map[string]any{
		"bytes": u.filmBytes, "goal_mib": goalUpload, "met": met, "mib_more": most, "before": u.before, "after": after, "uploads": all,
	})
	for _, name := range []string{stack.Manager, stack.APIServer} {
		r.limit("UPLOAD", fmt.Sprintf("%s's memory while films of %.0f MiB are uploaded and verified", name, inMiB(u.filmBytes)),
			fmt.Sprintf("%.1f MiB more", most[name]), fmt.Sprintf("≤ %.0f MiB", goalUpload), most[name] <= goalUpload)
	}
}

// watched has a film uploaded and looks at what that takes of memory.
func (u *uploads) watched(ctx context.Context, f film, send func(context.Context, film) (uploaded, error)) (uploaded, error) {
	for _, p := range u.stack.Herald() {
		if err := p.ForgetPeak(); err != nil {
			return uploaded{}, err
		}
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	heaps := make(chan map[string]float64, 1)
	go func() { heaps <- u.watchHeaps(inner, u.before) }()
	one, err := send(ctx, f)
	stop()
	one.HeapMore = <-heaps
	if err != nil {
		return one, err
	}
	one.More = map[string]float64{}
	for _, p := range u.stack.Herald() {
		_, peak := p.Memory()
		one.More[p.Name] = measure.Rounded(inMiB(peak)-u.before[p.Name].Resident, 1)
	}
	return one, u.remove(ctx)
}

// byREST asks for an address, uploads, and posts the film the moment it is there, for a time that does not come.
func (u *uploads) byREST(ctx context.Context, f film) (one uploaded, err error) {
	id, sent, err := u.send(ctx, f)
	if err != nil {
		return one, err
	}
	one.Put = sent
	begun := time.Now()
	err = u.post(ctx, id, begun.Add(farAhead))
	one.Verified = secondsSince(begun)
	return one, err
}

// send asks for an address and uploads a film there. It returns the film's id and how long the upload took, in seconds.
func (u *uploads) send(ctx context.Context, f film) (id string, sent float64, err error) {
	var address struct {
		Data struct {
			ID  string `json:"media_id"`
			URL string `json:"upload_url"`
		}
	}
	request := map[string]any{"name": "film.mp4", "mime_type": v1alpha1.MimeMP4, "size_bytes": f.size()}
	if err := u.call(ctx, u.team.Token, u.stack.UploadURL(), request, &address); err != nil {
		return "", 0, err
	}
	sent, err = put(ctx, address.Data.URL, v1alpha1.MimeMP4, f)
	return address.Data.ID, sent, err
}

// post posts a film that is uploaded; at once if no time is given.
func (u *uploads) post(ctx context.Context, film string, at time.Time) error {
	body := map[string]any{
		"category": v1alpha1.CategoryVideo, "media_id": film,
		"targets": []map[string]string{{"connection_id": u.connection.Name, "caption": "A film", "youtube_title": "A film"}},
	}
	if !at.IsZero() {
		body["scheduled_at"] = at.UTC().Format(time.RFC3339)
	}
	return u.call(ctx, u.team.Token, u.stack.PostsURL(), body, &struct{}{})
}

// byMedia applies a Media, uploads to the address in its status, and waits until the manager has verified it.
func (u *uploads) byMedia(ctx context.Context, f film) (one uploaded, err error) {
	one.Put, one.Verified, err = u.apply(ctx, u.team.Namespace, "film", v1alpha1.MimeMP4, f)
	return one, err
}

// remove deletes the posts and the files, so that the store does not keep a gigabyte for each.
func (u *uploads) remove(ctx context.Context) error {
	if err := u.clear(ctx); err != nil {
		return err
	}
	var list v1alpha1.MediaList
	if err := u.stack.Kubernetes.List(ctx, &list, client.InNamespace(u.team.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if err := u.stack.Kubernetes.Delete(ctx, &list.Items[i]); err != nil {
			return err
		}
		if err := u.awaitMedia(ctx, &list.Items[i], func() bool { return false }); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
