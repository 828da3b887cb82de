// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/test/sandboxtest"
)

// The teams' posts are published, are refused by the platform, and wait or have unknown outcomes, respectively.
const (
	good, refused, stuck = "team-acme", "team-beta", "team-gamma"

	keyName = "record"
	// forever is more than the number of events in a run.
	forever = 1 << 20
	// fast and slow are the lifetimes of tokens. The dashboard lists an account that has only ten days left.
	fast, slow = 2 * time.Hour, 10 * 24 * time.Hour
)

// event is a step that is executed at a given time in the run, and may be repeated at an interval.
type event struct {
	at, every time.Duration
	what      func(context.Context) error
}

// length is the duration of the run. It is long enough for the manager's sweep, five minutes after its restart.
const length = 7 * time.Minute

// eventLimit is the timeout for an event, so a run that hangs fails with a message.
const eventLimit = 2 * time.Minute

// play creates the teams and carries out the events.
func (s *stage) play(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p := &player{stage: s, keys: map[string]string{}, accounts: map[string]string{}}
	if err := p.connectAll(limited); err != nil {
		return err
	}
	fmt.Println("recording for", length)
	started, ticker := time.Now(), time.NewTicker(250*time.Millisecond)
	defer ticker.Stop()
	events := p.events()
	for now := time.Duration(0); now < length; now = time.Since(started) {
		for i := range events {
			e := &events[i]
			if e.what == nil || now < e.at {
				continue
			}
			if err := e.happens(ctx); err != nil {
				return fmt.Errorf("at %s: %w", now, err)
			}
			if e.at += e.every; e.every == 0 {
				e.what = nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (e *event) happens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventLimit)
	defer cancel()
	return e.what(ctx)
}

// player acts as the teams and the platforms.
type player struct {
	*stage

	// keys are the teams' API keys, and accounts are the IDs of the connections' accounts, by namespace/name.
	keys, accounts map[string]string
	texts, files   int
}

// events returns the events of the run.
func (p *player) events() []event {
	x, threads, images, page := "x", "threads", "images", "page"
	at := func(seconds int) time.Duration { return time.Duration(seconds) * time.Second }
	return []event{
		{at(0), at(1), p.posts(good, 0, x, threads)},
		{at(0), at(2), p.posts(good, 3*time.Second, x)},
		{at(0), at(5), p.posts(refused, 0, x)},
		{at(0), at(20), p.posts(stuck, 5*time.Second, x)},
		{at(0), at(3), p.readPosts},
		{at(5), at(15), p.signsIn},
		{at(20), 0, p.pictures(good, images, 3, at(20))},
		// Without a manager no post is published, and posts that become due are late.
		{at(60), 0, func(context.Context) error { p.manager.Stop(nil); return nil }},
		{at(85), 0, p.startManager},
		{at(120), 0, p.fault(refused, x, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusForbidden, Times: forever})},
		// The response is lost, and a post that is missing from a Page's listing may be online nevertheless.
		{at(150), 0, p.fault(stuck, page, sandboxtest.Fault{Operation: "publish", Kind: "drop_before", Times: 1})},
		{at(151), 0, p.posts(stuck, 0, page)},
		// The response is lost, and X does not answer lookups.
		{at(180), 0, p.fault(stuck, images, sandboxtest.Fault{Operation: "list", Kind: "status", Status: http.StatusServiceUnavailable, Times: forever})},
		{at(181), 0, p.fault(stuck, images, sandboxtest.Fault{Operation: "publish", Kind: "drop_after", Times: 1})},
		{at(182), 0, p.posts(stuck, 0, images)},
		{at(210), 0, p.fault(stuck, x, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 900, Times: forever})},
		// A suspension and its end.
		{at(240), 0, p.suspends(refused, true)},
		{at(290), 0, p.suspends(refused, false)},
		{at(300), 0, p.fault(good, images, sandboxtest.Fault{Operation: "upload", Kind: "delay", DelayMS: 20000, Times: forever})},
		{at(320), 0, p.pictures(good, images, 8, at(110))},
	}
}

// signsIn signs in with a link, then tries the link again.
func (p *player) signsIn(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.setup.Kubeconfig(processes.Admin))
	if err != nil {
		return err
	}
	secrets, err := kube.NewSecrets(config, "herald-record", namespace)
	if err != nil {
		return err
	}
	token, err := session.AddLink(ctx, secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, time.Minute)
	if err != nil {
		return fmt.Errorf("make a link to sign in: %w", err)
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, want := range []int{http.StatusSeeOther, http.StatusGone} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.setup.URL(processes.Site)+signin.LinkPath+token, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := stay.Do(request)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode != want {
			return fmt.Errorf("a link to sign in is answered with %d, want %d", answer.StatusCode, want)
		}
	}
	return nil
}

// connectAll creates the teams, each with a key and accounts. One account has lost its tokens.
func (p *player) connectAll(ctx context.Context) error {
	id := 1700000000
	for _, team := range []string{good, refused, stuck} {
		if err := p.team(ctx, team); err != nil {
			return err
		}
		for _, of := range []struct {
			name     string
			platform v1alpha1.Platform
			lasts    time.Duration
		}{{"x", v1alpha1.PlatformX, fast}, {"images", v1alpha1.PlatformX, fast}, {"threads", v1alpha1.PlatformThreads, slow}, {"page", v1alpha1.PlatformFacebook, slow}} {
			id++
			if err := p.connect(ctx, team, of.name, of.platform, fmt.Sprint(id), of.lasts); err != nil {
				return err
			}
		}
	}
	lost := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: refused, Name: "lost"}}
	return cluster.CreateConnection(ctx, p.kubernetes, lost, v1alpha1.PlatformX, cluster.Account{ID: "1799999999", AccessToken: "none"})
}

func (p *player) team(ctx context.Context, name string) error {
	team := &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.TeamSpec{
			Namespace:    name,
			Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive},
		},
	}
	if err := p.kubernetes.Create(ctx, team); err != nil {
		return err
	}
	if err := cluster.WaitReady(ctx, p.kubernetes, team, &team.Status.Conditions); err != nil {
		return err
	}
	p.keys[name] = apitoken.New(name, keyName)
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: keyName},
		Spec:       v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "record", SHA256: apitoken.Hash(name, keyName, p.keys[name])}}},
	}
	if err := p.kubernetes.Create(ctx, key); err != nil {
		return err
	}
	return cluster.WaitReady(ctx, p.kubernetes, key, &key.Status.Conditions)
}

func (p *player) connect(ctx context.Context, team, name string, platform v1alpha1.Platform, id string, lasts time.Duration) error {
	account, err := p.sandbox.Account(ctx, string(platform), id, map[string]any{"token_ttl_s": int(lasts.Seconds())})
	if err != nil {
		return err
	}
	connection := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}
	tokens := cluster.Account{ID: account.ID, AccessToken: account.AccessToken, RefreshToken: account.RefreshToken, Scopes: account.Scopes}
	if !account.ExpiresAt.IsZero() {
		tokens.ExpiresAt = account.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if err := cluster.CreateConnection(ctx, p.kubernetes, connection, platform, tokens); err != nil {
		return err
	}
	p.accounts[team+"/"+name] = account.ID
	return cluster.WaitReady(ctx, p.kubernetes, connection, &connection.Status.Conditions)
}

func (p *player) fault(team, connection string, f sandboxtest.Fault) func(context.Context) error {
	return func(ctx context.Context) error {
		f.Account, f.Platform = p.accounts[team+"/"+connection], string(v1alpha1.PlatformX)
		if connection == "page" {
			f.Platform = string(v1alpha1.PlatformFacebook)
		}
		return p.sandbox.Fault(ctx, f)
	}
}

// suspends sets or clears a team's suspension.
func (p *player) suspends(name string, suspend bool) func(context.Context) error {
	return func(ctx context.Context) error {
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
		return p.kubernetes.Patch(ctx, team, client.RawPatch(types.MergePatchType, patch))
	}
}

// posts publishes a text post through the REST API, scheduled for later unless later is zero.
func (p *player) posts(team string, later time.Duration, connections ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		p.texts++
		body := map[string]any{"category": "text"}
		if later > 0 {
			body["scheduled_at"] = time.Now().Add(later).UTC().Format(time.RFC3339Nano)
		}
		var targets []any
		for _, connection := range connections {
			targets = append(targets, map[string]any{"connection_id": connection, "caption": fmt.Sprintf("number %d of a run", p.texts)})
		}
		body["targets"] = targets
		return p.call(ctx, team, http.MethodPost, "/posts", body)
	}
}

// readPosts lists posts, and requests one that does not exist.
func (p *player) readPosts(ctx context.Context) error {
	if err := p.call(ctx, good, http.MethodGet, "/posts", nil); err != nil {
		return err
	}
	return p.call(ctx, good, http.MethodGet, "/posts/none", nil)
}

// call sends a request. A rejected request is not an error: the recording must contain some.
func (p *player) call(ctx context.Context, team, method, path string, in any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, p.setup.URL(processes.Site)+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+p.keys[team])
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	if response.StatusCode >= http.StatusBadRequest && method == http.MethodPost {
		fmt.Printf("%s: %s: %s\n", team, response.Status, text)
	}
	_ = response.Body.Close()
	return err
}

// pictures schedules posts with one image each.
func (p *player) pictures(team, connection string, n int, later time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		at := v1alpha1.NewTimePtr(time.Now().Add(later))
		for range n {
			p.files++
			name := fmt.Sprintf("picture-%d", p.files)
			if err := p.upload(ctx, team, name); err != nil {
				return err
			}
			post := &v1alpha1.Post{
				ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name},
				Spec: v1alpha1.PostSpec{
					Category: v1alpha1.CategoryImage, ScheduledAt: at,
					Image:   &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: name}}},
					Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: connection}, Caption: name}},
				},
			}
			if err := p.kubernetes.Create(ctx, post); err != nil {
				return err
			}
		}
		return nil
	}
}

// upload uploads a noise image of about a megabyte to the URL that the manager provides.
func (p *player) upload(ctx context.Context, team, name string) error {
	const side = 1000
	noise := rand.New(rand.NewPCG(uint64(p.files), 1))
	canvas := image.NewGray(image.Rect(0, 0, side, side))
	for i := range canvas.Pix {
		canvas.Pix[i] = uint8(noise.Uint32())
	}
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, canvas, &jpeg.Options{Quality: 95}); err != nil {
		return err
	}
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name},
		Spec:       v1alpha1.MediaSpec{FileName: name + ".jpg", MimeType: v1alpha1.MimeJPEG, SizeBytes: int64(picture.Len())},
	}
	if err := p.kubernetes.Create(ctx, media); err != nil {
		return err
	}
	if err := p.await(ctx, media, func() bool { return media.Status.UploadURL != "" }); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, media.Status.UploadURL, &picture)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", string(v1alpha1.MimeJPEG))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the store does not take %s: %s: %s", name, response.Status, text)
	}
	return p.await(ctx, media, func() bool { return media.Status.Phase == v1alpha1.MediaUploaded })
}

func (p *player) await(ctx context.Context, media *v1alpha1.Media, done func() bool) error {
	err := cluster.Until(ctx, "the manager to look at "+media.Name, func() (bool, error) {
		err := p.kubernetes.Get(ctx, client.ObjectKeyFromObject(media), media)
		return done(), err
	})
	if err != nil {
		return fmt.Errorf("%w; it is %q: %+v", err, media.Status.Phase, media.Status.Conditions)
	}
	return nil
}
