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
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/kube"
	sessions "github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

// people are the ordinary users in a soak. Processes are restarted during their requests, so requests that are safe to
// repeat are repeated until they succeed.
type people struct {
	*session
	*content
	client *http.Client
	// kubectl is the program, and kubeconfig its configuration.
	kubectl, kubeconfig string

	mu sync.Mutex
	// due contains the due times of the accepted posts, by their text. unsure contains the posts for which the last
	// request failed.
	due, unsure map[string]time.Time
	// answers counts successful and failed requests, by the way to use Herald.
	answers map[string]map[string]int
}

// The ways to use Herald, and the pause between two requests of each.
const (
	everyREST    = time.Second
	everyAgent   = 2 * time.Second
	everyApply   = 4 * time.Second
	everyUpload  = 4 * time.Second
	everyPage    = time.Second
	soakLead     = 20 * time.Second
	repeatAfter  = time.Second
	linkValidity = time.Hour
)

// newPeople signs a user in to the web application, and finds kubectl.
func (s *session) newPeople(ctx context.Context, c *content) (*people, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &people{
		session: s, content: c, client: &http.Client{Jar: jar, Timeout: 30 * time.Second}, due: map[string]time.Time{}, unsure: map[string]time.Time{},
		answers: map[string]map[string]int{}, kubectl: filepath.Join(s.root, "bin", "kubectl"), kubeconfig: s.stack.Setup.Kubeconfig(processes.Admin),
	}
	if p.kubectl, err = exec.LookPath(p.kubectl); err != nil {
		return nil, fmt.Errorf("%w\nrun `make soak`, which builds it", err)
	}
	for _, team := range c.teams {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: team.Namespace, Name: "soak"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "herald-viewer"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: access.LinkPerson}},
		}
		if err := s.stack.Kubernetes.Create(ctx, binding); err != nil {
			return nil, err
		}
	}
	secrets, err := kube.NewSecrets(s.stack.Config, "herald-soak", s.stack.Setup.Namespace)
	if err != nil {
		return nil, err
	}
	token, err := sessions.AddLink(ctx, secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, linkValidity)
	if err != nil {
		return nil, err
	}
	_, err = p.request(ctx, http.MethodPost, s.stack.Setup.URL(processes.Site)+signin.LinkPath+token, nil, nil)
	return p, err
}

// use starts all ways to use Herald. They stop when ctx is done.
func (p *people) use(ctx context.Context, all *sync.WaitGroup) {
	for _, way := range []struct {
		name  string
		pause time.Duration
		once  func(ctx context.Context, nth int) error
	}{
		{"posts through REST", everyREST, p.post},
		{"posts by agents", everyAgent, p.postAsAgent},
		{"posts applied by kubectl", everyApply, p.apply},
		{"uploads and posts with an image", everyUpload, p.upload},
		{"pages of the web application", everyPage, p.read},
	} {
		all.Go(func() {
			repeat(ctx, way.pause, func(nth int) {
				if err := way.once(ctx, nth); ctx.Err() == nil {
					p.increment(way.name, err)
				}
			})
		})
	}
}

func (p *people) increment(way string, err error) {
	word := "successful"
	if err != nil {
		word = "failed"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[way] == nil {
		p.answers[way] = map[string]int{}
	}
	p.answers[way][word]++
}

// schedule returns the request for a post that is due soon.
func (p *people) schedule(way string, nth int, team stack.Team, account int) (text string, at time.Time, body map[string]any) {
	text, at = fmt.Sprintf("Soak, %s, number %d", way, nth), time.Now().Add(soakLead).Truncate(time.Millisecond)
	return text, at, map[string]any{
		"category": v1alpha1.CategoryText, "scheduled_at": v1alpha1.NewTime(at).String(),
		"targets": []map[string]string{{"connection_id": team.Connections[account%len(team.Connections)].Name, "caption": text}},
	}
}

// record records that a post was accepted, or that its acceptance is unknown.
func (p *people) record(text string, at time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.due[text] = at
	} else {
		p.unsure[text] = at
	}
}

// untilAnswered repeats a request that is safe to repeat, until it succeeds or the post is due: after that, a new post
// would be rejected.
func (p *people) untilAnswered(ctx context.Context, text string, at time.Time, once func() error) (err error) {
	for {
		if err = once(); err == nil || ctx.Err() != nil || time.Now().After(at) {
			p.record(text, at, err)
			return err
		}
		_ = waitUntil(ctx, time.Now().Add(repeatAfter)) // ctx is checked above
	}
}

func (p *people) post(ctx context.Context, nth int) error {
	team := p.teams[nth%len(p.teams)]
	text, at, body := p.schedule("REST", nth, team, nth)
	return p.untilAnswered(ctx, text, at, func() error { return p.create(ctx, team, text, body) })
}

func (p *people) create(ctx context.Context, team stack.Team, key string, body any) error {
	_, err := p.request(ctx, http.MethodPost, p.stack.APIURL("/posts"), map[string]string{
		"Authorization": "Bearer " + team.Token, "Idempotency-Key": strings.ReplaceAll(key, " ", "-"),
	}, body)
	return err
}

// postAsAgent calls the tool create_post once, because agents do not repeat calls.
func (p *people) postAsAgent(ctx context.Context, nth int) error {
	team := p.teams[nth%len(p.teams)]
	text, at, body := p.schedule("MCP", nth, team, nth)
	answer, err := p.request(ctx, http.MethodPost, p.stack.Setup.URL(processes.Site)+"/mcp", map[string]string{"Authorization": "Bearer " + team.Token}, map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "create_post", "arguments": body},
	})
	if err == nil {
		var result struct {
			Result struct {
				IsError bool `json:"isError"`
			} `json:"result"`
			Error any `json:"error"`
		}
		if err = json.Unmarshal(answer, &result); err == nil && (result.Result.IsError || result.Error != nil) {
			err = fmt.Errorf("create_post returns %s", answer)
		}
	}
	p.record(text, at, err)
	return err
}

// apply applies a post with kubectl.
func (p *people) apply(ctx context.Context, nth int) error {
	team := p.teams[nth%len(p.teams)]
	text, at, _ := p.schedule("kubectl", nth, team, nth)
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Post",
		"metadata": map[string]string{"namespace": team.Namespace, "name": fmt.Sprintf("soak-%d", nth)},
		"spec": map[string]any{
			"category": v1alpha1.CategoryText, "scheduledAt": v1alpha1.NewTime(at),
			"targets": []map[string]any{{"connectionRef": map[string]string{"name": team.Connections[nth%len(team.Connections)].Name}, "caption": text}},
		},
	})
	if err != nil {
		return err
	}
	return p.untilAnswered(ctx, text, at, func() error {
		command := exec.CommandContext(ctx, p.kubectl, "--kubeconfig", p.kubeconfig, "apply", "--server-side", "-f", "-")
		command.Stdin = bytes.NewReader(manifest)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply: %w: %s", err, output)
		}
		return nil
	})
}

// upload uploads a picture and posts it to Threads.
func (p *people) upload(ctx context.Context, nth int) error {
	team := p.teams[nth%len(p.teams)]
	file, err := drawPicture(uint64(nth % picturesPerTeam))
	if err != nil {
		return err
	}
	answer, err := p.request(ctx, http.MethodPost, p.stack.APIURL("/media/upload-url"), map[string]string{"Authorization": "Bearer " + team.Token}, map[string]any{
		"name": fmt.Sprintf("soak-%d.jpg", nth), "mime_type": v1alpha1.MimeJPEG, "size_bytes": len(file),
	})
	if err != nil {
		return err
	}
	var created uploadOf
	if err := json.Unmarshal(answer, &created); err != nil {
		return err
	}
	if _, err := put(ctx, created.Data.UploadURL, v1alpha1.MimeJPEG, bytes.NewReader(file), int64(len(file))); err != nil {
		return err
	}
	text, at, body := p.schedule("upload", nth, team, len(team.Connections)/2+nth%(len(team.Connections)/2))
	body["category"], body["media_ids"] = v1alpha1.CategoryImage, []string{created.Data.MediaID}
	return p.untilAnswered(ctx, text, at, func() error { return p.create(ctx, team, text, body) })
}

// read reads pages of the web application.
func (p *people) read(ctx context.Context, nth int) error {
	team := p.teams[nth%len(p.teams)]
	paths := []string{"/", "/posts", "/calendar", "/connections"}
	_, err := p.request(ctx, http.MethodGet, p.stack.Setup.URL(processes.Site)+"/teams/"+team.Namespace+paths[nth%len(paths)], nil, nil)
	return err
}

// request sends a request with a JSON body and returns the body of a successful response.
func (p *people) request(ctx context.Context, method, url string, header map[string]string, body any) ([]byte, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return send(p.client, request)
}

// verify waits until all posts are published, and returns an error if a post was lost or published twice, or if a way
// to use Herald never worked.
func (p *people) verify(ctx context.Context) error {
	var published map[string]int
	end := time.Now().Add(soakSettles)
	err := until(ctx, time.Second, "all posts are published", func(ctx context.Context) (bool, error) {
		shown, err := p.shown(ctx, []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads})
		if err != nil {
			return false, err
		}
		published = map[string]int{}
		for i := range shown {
			published[shown[i].Text]++
		}
		return len(p.missing(published)) == 0 || time.Now().After(end), nil
	})
	lost := p.missing(published)
	for _, text := range lost[:min(len(lost), shownLost)] {
		err = errors.Join(err, fmt.Errorf("%q, due at %s, was not published", text, p.due[text]))
	}
	twice := 0
	for text, times := range published {
		if _, unsure := p.unsure[text]; times > 1 && (unsure || !p.due[text].IsZero()) {
			twice++
			err = errors.Join(err, fmt.Errorf("%q was published %d times", text, times))
		}
	}
	for way, answers := range p.answers {
		p.logf("  %-32s %s", way, tally(answers))
		if answers["successful"] == 0 {
			err = errors.Join(err, fmt.Errorf("%s: none was successful", way))
		}
	}
	p.logf("  of %d accepted posts, %d were lost and %d published twice; the outcome of %d requests is unknown", len(p.due), len(lost), twice, len(p.unsure))
	return err
}

// shownLost is the maximum number of lost posts to name.
const shownLost = 5

func (p *people) missing(published map[string]int) (lost []string) {
	for text := range p.due {
		if published[text] == 0 {
			lost = append(lost, text)
		}
	}
	return lost
}
