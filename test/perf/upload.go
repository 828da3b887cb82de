// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/perf/internal/measure"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// goalUpload is how much more memory manager and apiserver may each take while a film is uploaded and verified, in MiB.
const goalUpload = 32.0

const (
	// filmFolder has the small films that large ones are made of.
	filmFolder = "internal/mediaprobe/testdata"
	// leastFilm is the size of a film in a run that is scaled down to nothing, in bytes.
	leastFilm = 1 << 20
	// settled is for how long a process's memory must not have become less, and settleLimit how long that is waited for.
	settled, settleLimit = 5 * time.Second, time.Minute
	// heapEvery paces the question what the heaps hold.
	heapEvery = 500 * time.Millisecond
)

// uploaded is what one upload took. Times are in seconds.
type uploaded struct {
	Film string  `json:"film"`
	Way  string  `json:"way"`
	Put  float64 `json:"put_s"`
	// Verified is from the end of the upload: until POST /posts has answered, or until the Media says what it is.
	Verified float64 `json:"verified_s"`
	// More is how much more resident memory each process had at the most than before all uploads, in MiB, and HeapMore how
	// much more its heap held, garbage included, whenever it was asked.
	More     map[string]float64 `json:"mib_more"`
	HeapMore map[string]float64 `json:"heap_mib_more"`
}

// resting is what a process takes of memory while nothing happens, in MiB.
type resting struct {
	Resident float64 `json:"resident_mib"`
	Heap     float64 `json:"heap_mib"`
}

type uploads struct {
	*session
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
	u := &uploads{session: s}
	if u.connection, err = s.stack.ConnectTo(ctx, v1alpha1.PlatformYouTube, s.connected[0].Namespace, "bench"); err != nil {
		return err
	}
	if u.before, err = u.resting(ctx); err != nil {
		return err
	}
	var all []uploaded
	for _, source := range sources {
		large, err := u.film(source.file)
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

func inMiB(bytes int64) float64 { return measure.Rounded(float64(bytes)/(1<<20), 1) }

// film makes a small film of Herald's tests one of the wanted size.
func (u *uploads) film(name string) (film, error) {
	data, err := os.ReadFile(filepath.Join(u.root, filmFolder, name))
	if err != nil {
		return film{}, err
	}
	return stretch(data, u.filmBytes)
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
	go func() { heaps <- u.watchHeaps(inner) }()
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

// watchHeaps asks both processes again and again what their heaps hold, until it is stopped, and returns how much more
// than before that was at the most, in MiB.
func (u *uploads) watchHeaps(ctx context.Context) map[string]float64 {
	more := map[string]float64{}
	for waitUntil(ctx, time.Now().Add(heapEvery)) == nil {
		for name := range u.before {
			// The last question is cut off in its middle.
			if heap, err := u.heapNow(ctx, name); err == nil {
				more[name] = max(more[name], measure.Rounded(inMiB(heap)-u.before[name].Heap, 1))
			}
		}
	}
	return more
}

// byREST asks for an address, uploads, and posts the film the moment it is there.
func (u *uploads) byREST(ctx context.Context, f film) (one uploaded, err error) {
	var address struct {
		Data struct {
			ID  string `json:"media_id"`
			URL string `json:"upload_url"`
		}
	}
	request := map[string]any{"name": "film.mp4", "mime_type": v1alpha1.MimeMP4, "size_bytes": f.size()}
	if err := u.call(ctx, u.stack.UploadURL(), request, &address); err != nil {
		return one, err
	}
	if one.Put, err = put(ctx, address.Data.URL, f); err != nil {
		return one, err
	}
	begun := time.Now()
	err = u.call(ctx, u.stack.PostsURL(), map[string]any{
		"category": v1alpha1.CategoryVideo, "scheduled_at": begun.Add(farAhead).UTC().Format(time.RFC3339), "media_id": address.Data.ID,
		"targets": []map[string]string{{"connection_id": u.connection.Name, "caption": "A film", "youtube_title": "A film"}},
	}, &struct{}{})
	one.Verified = secondsSince(begun)
	return one, err
}

// byMedia applies a Media, uploads to the address in its status, and waits until the manager has verified it.
func (u *uploads) byMedia(ctx context.Context, f film) (one uploaded, err error) {
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.connected[0].Namespace, Name: "film"},
		Spec:       v1alpha1.MediaSpec{FileName: "film.mp4", MimeType: v1alpha1.MimeMP4, SizeBytes: f.size()},
	}
	if err := u.stack.Kubernetes.Create(ctx, media); err != nil {
		return one, err
	}
	if err := u.awaitMedia(ctx, media, func() bool { return media.Status.UploadURL != "" }); err != nil {
		return one, err
	}
	if one.Put, err = put(ctx, media.Status.UploadURL, f); err != nil {
		return one, err
	}
	begun := time.Now()
	err = u.awaitMedia(ctx, media, func() bool { return media.Status.Phase != v1alpha1.MediaPending })
	one.Verified = secondsSince(begun)
	if err == nil && media.Status.Phase != v1alpha1.MediaUploaded {
		err = fmt.Errorf("the manager says of the film: %+v", media.Status)
	}
	return one, err
}

// awaitMedia reads a Media until something is true of it.
func (u *uploads) awaitMedia(ctx context.Context, media *v1alpha1.Media, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	for {
		if err := u.stack.Kubernetes.Get(ctx, client.ObjectKeyFromObject(media), media); err != nil || done() {
			return err
		}
		if err := waitUntil(ctx, time.Now().Add(pollEvery)); err != nil {
			return fmt.Errorf("waiting for the manager to look at a Media, of which it says %+v: %w", media.Status, err)
		}
	}
}

// call posts a request to Herald, which is to create something, and reads its answer.
func (u *uploads) call(ctx context.Context, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+u.connected[0].Token)
	request.Header.Set("Content-Type", "application/json")
	return answered(request, out)
}

// put uploads a film and returns how long that took, in seconds.
func put(ctx context.Context, url string, f film) (float64, error) {
	begun := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, f.read())
	if err != nil {
		return 0, err
	}
	request.ContentLength = f.size()
	request.Header.Set("Content-Type", string(v1alpha1.MimeMP4))
	err = answered(request, nil)
	return secondsSince(begun), err
}

// answered sends a request and reads what comes back as JSON into out, unless that is nil.
func answered(request *http.Request, out any) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s%s answers %s: %s", request.Method, request.URL.Host, request.URL.Path, response.Status, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

func secondsSince(t time.Time) float64 { return measure.Rounded(time.Since(t).Seconds(), 3) }

// remove deletes the posts and the files, so that the store does not keep a gigabyte for each.
func (u *uploads) remove(ctx context.Context) error {
	if err := u.clear(ctx); err != nil {
		return err
	}
	var list v1alpha1.MediaList
	if err := u.stack.Kubernetes.List(ctx, &list, client.InNamespace(u.connected[0].Namespace)); err != nil {
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

// resting waits until manager and apiserver take no less memory any more, and returns how much that is. What they hold
// from their start would hide what an upload takes.
func (u *uploads) resting(ctx context.Context) (map[string]resting, error) {
	found := map[string]resting{}
	for _, p := range u.stack.Herald() {
		if err := u.collect(ctx, p.Name); err != nil {
			return nil, err
		}
		heap, err := u.heapNow(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		least, _ := p.Memory()
		begun := time.Now()
		for since := begun; time.Since(since) < settled && time.Since(begun) < settleLimit; {
			if err := waitUntil(ctx, time.Now().Add(pollEvery)); err != nil {
				return nil, err
			}
			if now, _ := p.Memory(); now < least {
				least, since = now, time.Now()
			}
		}
		found[p.Name] = resting{Resident: inMiB(least), Heap: inMiB(heap)}
		u.sayf("  UPLOAD: %s at rest: %.1f MiB, of which the heap holds %.1f", p.Name, found[p.Name].Resident, found[p.Name].Heap)
	}
	return found, nil
}

// heapNow is what the heap of the manager or the apiserver holds now, garbage included, in bytes.
func (s *session) heapNow(ctx context.Context, process string) (int64, error) {
	address := map[string]string{stack.Manager: s.stack.ManagerMetricsURL(), stack.APIServer: s.stack.APIServerMetricsURL()}[process]
	const held = "go_memstats_heap_alloc_bytes"
	samples, err := scrape(ctx, http.DefaultClient, address, held)
	if err == nil && len(samples) != 1 {
		err = fmt.Errorf("the metrics of the %s have %d samples of %s", process, len(samples), held)
	}
	if err != nil {
		return 0, err
	}
	return int64(samples[0].Value), nil
}

// collect has the manager or the apiserver collect its garbage.
func (s *session) collect(ctx context.Context, process string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.stack.ProfileURLs()[process]+"/heap?gc=1", http.NoBody)
	if err != nil {
		return err
	}
	return answered(request, nil)
}
