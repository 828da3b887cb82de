// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// B5's goals, in MiB: the memory of the manager and of the apiserver without posts, and each process's growth while a
// video is uploaded, verified and sent to a platform.
const (
	goalIdle   = 64.0
	goalUpload = 32.0
)

const (
	// idleWindow is how long an idle process is observed: longer than the two minutes after which Go forces a garbage
	// collection.
	idleWindow = 150 * time.Second
	// idleEvery is the interval of the measurements.
	idleEvery = 500 * time.Millisecond
	// A process counts as at rest once its memory has not shrunk for the duration settled, and after settleLimit in any
	// case.
	settled, settleLimit = 5 * time.Second, time.Minute
	// filmFolder contains the small videos from which large ones are made.
	filmFolder = "internal/media/probe/testdata"
	// leastFilm is the minimum video size in a scaled-down run, in bytes.
	leastFilm = 1 << 20
)

// upload is B5's result for a video. Times are in seconds.
type upload struct {
	Way string  `json:"way"`
	Put float64 `json:"put_s"`
	// Done is the time from the end of the upload until the video is published or verified.
	Done float64 `json:"done_s"`
	// More is each process's peak resident memory minus its memory at rest, in MiB.
	More map[string]float64 `json:"mib_more"`
}

// b5 measures the memory of the manager and the apiserver.
type b5 struct {
	*session
	connection stack.Connection
	// before is the memory of each process at rest, in MiB.
	before map[string]float64
}

// runB5 measures the memory of both processes without posts, and while the largest videos are uploaded: one with its
// index first, as for the web, posted through the REST API and sent to YouTube; and one with its index last, as cameras
// write it, for an applied Media.
func runB5(ctx context.Context, s *session, r *report, id string) error {
	b := &b5{session: s}
	return s.prepare(ctx, func() error {
		idles, err := b.idle(ctx)
		if err != nil {
			return err
		}
		namespace := s.connected[0].Namespace
		accounts, err := s.stack.Connect(ctx, v1alpha1.PlatformYouTube, namespace, firstYouTube, 1)
		if err != nil {
			return err
		}
		b.connection = accounts[0]
		if b.before, err = b.rest(ctx); err != nil {
			return err
		}
		published, err := b.watched(ctx, "REST, to YouTube", "faststart.mp4", b.publish)
		if err != nil {
			return err
		}
		applied, err := b.watched(ctx, "Media", "tail.mp4", func(ctx context.Context, f film) (sent, done float64, err error) {
			return s.apply(ctx, namespace, "film", v1alpha1.MimeMP4, f.read(), f.size())
		})
		if err == nil {
			b.report(r, id, idles, published, applied)
		}
		return err
	})
}

func (b *b5) report(r *report, id string, idles map[string]float64, uploads ...upload) {
	var idle, more float64
	for _, name := range []string{processes.Manager, processes.APIServer} {
		idle = max(idle, idles[name])
		r.limit(id, name+"'s memory without posts", fmt.Sprintf("%.1f MiB", idles[name]), fmt.Sprintf("≤ %.0f MiB", goalIdle), idles[name] <= goalIdle)
		var most float64
		for _, one := range uploads {
			most = max(most, one.More[name])
		}
		more = max(more, most)
		r.limit("", fmt.Sprintf("%s's memory while videos of %.0f MiB are uploaded", name, inMiB(b.filmBytes)),
			fmt.Sprintf("%.1f MiB more", most), fmt.Sprintf("≤ %.0f MiB", goalUpload), most <= goalUpload)
	}
	r.add(id, map[string]any{
		"idle_mib": idle, "idle_goal": goalIdle, "idle_met": idle <= goalIdle, "idle": idles, "connections": b.connections,
		"upload_mib_more": more, "upload_goal": goalUpload, "upload_met": more <= goalUpload,
		"bytes": b.filmBytes, "before": b.before, "uploads": uploads,
	})
}

// idle waits until both processes are at rest and returns the peak memory of each from then on, in MiB.
func (b *b5) idle(ctx context.Context) (map[string]float64, error) {
	most, err := b.rest(ctx)
	if err != nil {
		return nil, err
	}
	for started := time.Now(); time.Since(started) < time.Duration(float64(idleWindow)*min(b.scale, 1)); {
		if err := waitUntil(ctx, time.Now().Add(idleEvery)); err != nil {
			return nil, err
		}
		for _, p := range b.stack.Herald() {
			now, _ := stack.Memory(p.PID())
			most[p.Name] = max(most[p.Name], inMiB(now))
		}
	}
	b.logf("  B5: without posts, MiB: %v", most)
	return most, nil
}

// rest waits until the memory of both processes stops shrinking, and returns it in MiB. Memory left over from startup
// would hide the effect of an upload.
func (b *b5) rest(ctx context.Context) (map[string]float64, error) {
	found := map[string]float64{}
	for _, p := range b.stack.Herald() {
		// The query runs a garbage collection first.
		if _, err := get(ctx, http.DefaultClient, b.stack.ProfileURL(p.Name)+"/heap?gc=1"); err != nil {
			return nil, err
		}
		least, _ := stack.Memory(p.PID())
		started := time.Now()
		for since := started; time.Since(since) < settled && time.Since(started) < settleLimit; {
			if err := waitUntil(ctx, time.Now().Add(pollEvery)); err != nil {
				return nil, err
			}
			if now, _ := stack.Memory(p.PID()); now < least {
				least, since = now, time.Now()
			}
		}
		found[p.Name] = inMiB(least)
	}
	return found, nil
}

// watched makes a large video from a small one, uploads it, and measures the memory during that time.
func (b *b5) watched(ctx context.Context, way, source string, send func(context.Context, film) (sent, done float64, err error)) (upload, error) {
	one := upload{Way: way, More: map[string]float64{}}
	data, err := os.ReadFile(filepath.Join(b.root, filmFolder, source))
	if err != nil {
		return one, err
	}
	large, err := stretch(data, b.filmBytes)
	if err != nil {
		return one, err
	}
	for _, p := range b.stack.Herald() {
		if err := stack.ForgetPeak(p.PID()); err != nil {
			return one, err
		}
	}
	if one.Put, one.Done, err = send(ctx, large); err != nil {
		return one, fmt.Errorf("%s: %w", way, err)
	}
	for _, p := range b.stack.Herald() {
		_, peak := stack.Memory(p.PID())
		one.More[p.Name] = measure.Rounded(inMiB(peak)-b.before[p.Name], 1)
	}
	b.logf("  B5: %s: a video of %.0f MiB sent in %.1f s, done %.1f s later; MiB more, at most: %v", way, inMiB(b.filmBytes), one.Put, one.Done, one.More)
	return one, b.clear(ctx)
}

// publish requests an upload URL, uploads a video, posts it immediately, and waits until the platform shows it as
// complete.
func (b *b5) publish(ctx context.Context, f film) (sent, done float64, err error) {
	token := b.connected[0].Token
	var address struct {
		Data struct {
			ID  string `json:"media_id"`
			URL string `json:"upload_url"`
		}
	}
	request := map[string]any{"name": "film.mp4", "mime_type": v1alpha1.MimeMP4, "size_bytes": f.size()}
	err = call(ctx, http.MethodPost, b.stack.APIURL("/media/upload-url"), token, request, &address)
	if err != nil {
		return 0, 0, err
	}
	if sent, err = put(ctx, address.Data.URL, v1alpha1.MimeMP4, f.read(), f.size()); err != nil {
		return sent, 0, err
	}
	started := time.Now()
	err = call(ctx, http.MethodPost, b.stack.APIURL("/posts"), token, map[string]any{
		"category": v1alpha1.CategoryVideo, "media_id": address.Data.ID,
		"targets": []map[string]string{{"connection_id": b.connection.Name, "caption": "A video", "youtube_title": "A video"}},
	}, nil)
	if err != nil {
		return sent, 0, err
	}
	if _, err := b.awaitNone(ctx, notFinished); err != nil {
		return sent, 0, err
	}
	done = secondsSince(started)
	if left, err := b.first(ctx, notPosted); err != nil || left != "" {
		return sent, done, errors.Join(err, b.whyNot(ctx))
	}
	shown, err := b.stack.Sandbox.Posts(ctx, string(v1alpha1.PlatformYouTube), b.connection.AccountID)
	if err == nil && (len(shown) != 1 || len(shown[0].Media) != 1 || shown[0].Media[0].Bytes != f.size()) {
		err = fmt.Errorf("one video of %d bytes was posted, and the platform shows %+v", f.size(), shown)
	}
	return sent, done, err
}

func inMiB(bytes int64) float64 { return measure.Rounded(float64(bytes)/(1<<20), 1) }
