// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

const (
	team = "acme"
	// deliveredWithin allows for a lost call: its absence counts after the call's timeout.
	deliveredWithin = 5 * time.Minute
	pollEvery       = 200 * time.Millisecond
)

// herald is a running Herald with a team, whose account on the server is connected.
type herald struct {
	env            *envtest.Environment
	site           string
	token          string
	kubeconfig     string
	person, client *http.Client
	// manager is the running manager, and restart starts another one.
	manager *managertest.Process
	restart func()
}

// startHerald starts a manager and an apiserver that publish to Bluesky, each without any other platform. at is the site, or
// nil for one on the address of the apiserver.
func startHerald(t *testing.T, platform *configv1alpha1.Platform, at *website) *herald {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no Kubernetes API: run make test-bluesky")
	}
	log.SetLogger(logr.Discard())
	env, err := envtest.Start()
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, env.Stop()) })
	must.Succeed(t, cluster.ApplyFolders(t.Context(), env.Client, filepath.Join(envtest.Root(), "config", "rbac")))
	installation := managertest.Installation{Env: env, Program: managertest.Build(t), Store: storetest.Start(t)}
	manager, apiserver := installation.Config(t), installation.APIServerConfig(t)
	for _, platforms := range []*configv1alpha1.Platforms{&manager.Platforms, &apiserver.Platforms} {
		*platforms = configv1alpha1.Platforms{Bluesky: platform}
	}
	apiserver.SiteURL = "http://" + apiserver.BindAddress
	var through http.RoundTripper
	if at != nil {
		at.forward(t, apiserver.SiteURL)
		apiserver.SiteURL, through = at.URL, at.transport()
	}
	installation.APIServer(t, apiserver)
	jar, err := cookiejar.New(nil)
	must.Succeed(t, err)
	h := &herald{env: env, site: apiserver.SiteURL, person: &http.Client{Jar: jar, Transport: through}, client: &http.Client{Transport: through}, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	h.restart = func() { h.manager = installation.Manager(t, manager) }
	h.restart()
	config, err := env.Kubeconfig("admin", team, "system:masters")
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(h.kubeconfig, config, 0o600))
	return h
}

// kubectl applies manifests.
func (h *herald) kubectl(t *testing.T, manifests string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(envtest.Root(), "bin", "kubectl"), "--kubeconfig", h.kubeconfig, "apply", "-f", "-")
	command.Stdin = strings.NewReader(manifests)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, output)
	}
}

// setUp creates the team with an API key and a person, and connects an account by manifests.
func (h *herald) setUp(t *testing.T, a *account) {
	t.Helper()
	h.token = apitoken.New(team, "key")
	h.kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {social.herald.dev/team: %[1]s}}
---
apiVersion: social.herald.dev/v1alpha1
kind: Team
metadata: {name: %[1]s}
spec: {namespace: %[1]s, subscription: {plan: unlimited, state: active}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: person}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: herald-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "herald:link"}]
---
apiVersion: social.herald.dev/v1alpha1
kind: APIKey
metadata: {namespace: %[1]s, name: key}
spec: {tokens: [{name: first, sha256: %[2]s}]}
---
apiVersion: v1
kind: Secret
metadata: {namespace: %[1]s, name: sky}
stringData: {accessToken: "%[3]s"}
---
apiVersion: social.herald.dev/v1alpha1
kind: Connection
metadata: {namespace: %[1]s, name: sky}
spec: {platform: bluesky, accountID: "%[4]s", credentialsSecretRef: {name: sky}}
`, team, apitoken.Hash(team, "key", h.token), a.token(), a.DID))
	h.await(t, "the account to be connected", func() (bool, error) {
		var c v1alpha1.Connection
		if err := h.env.Client.Get(t.Context(), keyOf("sky"), &c); err != nil {
			return false, err
		}
		for _, condition := range c.Status.Conditions {
			if condition.Type == v1alpha1.ConditionReady && condition.Status == metav1.ConditionTrue {
				return true, nil
			}
		}
		return false, fmt.Errorf("its conditions are %+v", c.Status.Conditions)
	})
	h.await(t, "the API to know the key", func() (bool, error) {
		status, body := h.call(t, http.MethodGet, "/api/v2/posts", "")
		return status == http.StatusOK, fmt.Errorf("it answers %d %s", status, body)
	})
}

// await waits until a condition holds. Its error is what it waits for.
func (h *herald) await(t *testing.T, what string, done func() (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollEvery, deliveredWithin, true, func(context.Context) (bool, error) {
		ok, err := done()
		last = err
		return ok, nil
	})
	if err != nil {
		t.Fatalf("wait for %s: %v; %v", what, err, last)
	}
}

// call sends a request with the API key.
func (h *herald) call(t *testing.T, method, path, body string) (status int, answer []byte) {
	t.Helper()
	return h.send(t, h.client, method, h.site+path, "application/json", []byte(body), "Bearer "+h.token)
}

func (h *herald) send(t *testing.T, with *http.Client, method, address, kind string, body []byte, authorization string) (status int, answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	must.Succeed(t, err)
	request.Header.Set("Content-Type", kind)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := with.Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response.StatusCode, answer
}

// upload uploads a file through version 2, and returns its id.
func (h *herald) upload(t *testing.T, kind, name string, data []byte) string {
	t.Helper()
	status, answer := h.call(t, http.MethodPost, "/api/v2/media/upload-url", fmt.Sprintf(`{"mime_type":%q,"size_bytes":%d,"name":%q,"alt_text":"a gray area"}`, kind, len(data), name))
	var made struct {
		Data struct {
			ID  string `json:"media_id"`
			URL string `json:"upload_url"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("the upload gets the response %d %s", status, answer)
	}
	if status, answer := h.send(t, h.client, http.MethodPut, made.Data.URL, kind, data, ""); status != http.StatusOK {
		t.Fatalf("the store responds %d %s", status, answer)
	}
	return made.Data.ID
}

// create creates a post through version 2, and returns its id.
func (h *herald) create(t *testing.T, post string) string {
	t.Helper()
	status, answer := h.call(t, http.MethodPost, "/api/v2/posts", post)
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("the post gets the response %d %s", status, answer)
	}
	return made.Data.ID
}

// web sends a form as the signed-in person, and returns the page that it leads to.
func (h *herald) web(t *testing.T, path string, form url.Values) string {
	t.Helper()
	status, page := h.send(t, h.person, http.MethodPost, h.site+path, "application/x-www-form-urlencoded", []byte(form.Encode()), "")
	if status != http.StatusOK {
		t.Fatalf("%s is answered %d %s", path, status, page)
	}
	return string(page)
}

// signIn signs the person in with a one-time link.
func (h *herald) signIn(t *testing.T) {
	t.Helper()
	secrets, err := kube.NewSecrets(h.env.Config, "herald-bluesky-test", managertest.Namespace)
	must.Succeed(t, err)
	link, err := session.AddLink(t.Context(), secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, time.Hour)
	must.Succeed(t, err)
	h.web(t, signin.LinkPath+link, url.Values{})
}

func (h *herald) posted(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		h.await(t, "post "+name, func() (bool, error) {
			var p v1alpha1.Post
			if err := h.env.Client.Get(t.Context(), keyOf(name), &p); err != nil {
				return false, err
			}
			phase := posting.Of(&p).Phase()
			if phase == v1alpha1.PhaseFailed {
				t.Fatalf("post %s failed: %+v", name, p.Status)
			}
			return phase == v1alpha1.PhasePosted, fmt.Errorf("it is %s: %+v", phase, p.Status.Conditions)
		})
	}
}

// TestHerald publishes to Bluesky's server through kubectl, version 2 of the API and the web application, and reads
// everything back with Bluesky's client. Two calls are lost: one is cut off before the server has it, and one after. Both
// posts are published once, without anybody's decision.
func TestHerald(t *testing.T) {
	s := start(t, "bakery.test", "zoe.test")
	acme, zoe := &s.Accounts[0], &s.Accounts[1]
	fates := map[string]fate{"cut off before": cutBefore, "cut off after": cutAfter}
	var mu sync.Mutex
	address, cuts := cut(t, s, func(record string) fate {
		mu.Lock()
		defer mu.Unlock()
		for text, fate := range fates {
			if strings.Contains(record, text) {
				delete(fates, text) // the next call of the post passes
				return fate
			}
		}
		return passes
	})
	h := startHerald(t, &configv1alpha1.Platform{Server: address}, nil)
	h.setUp(t, acme)

	data, err := mediatest.Picture(color.Gray{Y: 10})
	must.Succeed(t, err)
	first, second := h.upload(t, "image/jpeg", "a.jpg", data), h.upload(t, "image/jpeg", "b.jpg", data)
	h.kubectl(t, fmt.Sprintf(`
apiVersion: social.herald.dev/v1alpha1
kind: Post
metadata: {namespace: %s, name: thread}
spec:
  category: tree
  targets: [{connectionRef: {name: sky}, language: pt-BR}]
  tree:
    cards:
    - {caption: "one, for @zoe.test #launch"}
    - {caption: two, mediaRefs: [{name: %s}, {name: %s}]}
`, team, first, second))
	moving, err := mediatest.Film(envtest.Root())
	must.Succeed(t, err)
	film := h.upload(t, "video/mp4", "c.mp4", moving)
	video := h.create(t, `{"category":"video","media_id":"`+film+`","targets":[{"connection_id":"sky","caption":"moves","language":"en"}]}`)
	text := func(caption string) string {
		return h.create(t, `{"category":"text","targets":[{"connection_id":"sky","caption":"`+caption+`"}]}`)
	}
	lost := []string{text("cut off before"), text("cut off after")}

	h.signIn(t)
	accounts := "/teams/" + team + "/connections"
	h.web(t, accounts+"/connect", url.Values{"platform": {"bluesky"}, "name": {"@zoe.test"}, "password": {zoe.AppPassword}})
	var connected struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	h.await(t, "the account that was connected on the web", func() (bool, error) {
		status, answer := h.call(t, http.MethodGet, "/api/v2/connections?platform=bluesky", "")
		err := json.Unmarshal(answer, &connected)
		return err == nil && len(connected.Data) == 2 && bytes.Contains(answer, []byte("zoe.test")), fmt.Errorf("the connections are %d %s", status, answer)
	})
	mine, hers := connected.Data[0].ID, connected.Data[1].ID
	h.web(t, "/teams/"+team+"/posts/new", url.Values{
		"key": {"a-form"}, "category": {"text"}, "when": {"now"}, "caption": {"from the web"}, "language-" + mine: {"de"}, "language-" + hers: {"de"}, "target": {mine, hers},
	})
	if status, answer := h.call(t, http.MethodGet, "/api/v1/posts", ""); status != http.StatusOK || !bytes.Contains(answer, []byte(`"data":[]`)) {
		t.Errorf("version 1 lists %d %s", status, answer)
	}

	h.posted(t, append(lost, "thread", video)...)
	h.await(t, "the post from the web", func() (bool, error) { return len(s.read(t, zoe)) == 1, nil })
	if cuts.Load() != 2 {
		t.Errorf("%d calls were cut off, want 2", cuts.Load())
	}
	published(t, s, acme, zoe, len(moving))
}

// published compares what Bluesky's client reads with what was sent.
func published(t *testing.T, s *server, acme, zoe *account, film int) {
	t.Helper()
	count, of := map[string]int{}, map[string]post{}
	for _, p := range s.read(t, acme) {
		count[p.Text]++
		of[p.Text] = p
	}
	const one = "one, for @zoe.test #launch"
	want := map[string]int{one: 1, "two": 1, "moves": 1, "cut off before": 1, "cut off after": 1, "from the web": 1}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("the posts on the server (-want +got):\n%s", diff)
	}
	if got := of[one].Facets; len(got) != 2 || got[0].Mention != zoe.DID || got[1].Tag != "launch" {
		t.Errorf("the mention and the hashtag are %+v", got)
	}
	for text, language := range map[string]string{one: "pt-BR", "two": "pt-BR", "moves": "en", "from the web": "de", "cut off after": ""} {
		if got := strings.Join(of[text].Languages, " "); got != language {
			t.Errorf("the language of %q is %q, want %q", text, got, language)
		}
	}
	root := ref{of[one].URI, of[one].CID}
	if reply := of["two"]; reply.Parent == nil || *reply.Parent != root || *reply.Root != root {
		t.Errorf("the second post of the thread replies to %+v", reply.Parent)
	}
	for i, got := range of["two"].Images {
		if got.Size == 0 || got.Size != got.Downloaded || got.MIME != "image/jpeg" || got.Alt != "a gray area" {
			t.Errorf("image %d is %+v", i, got)
		}
	}
	if got := of["moves"].Video; len(of["two"].Images) != 2 || got == nil || got.Size != got.Downloaded || got.Size == 0 || got.MIME != "video/mp4" {
		t.Errorf("%d images, and the video of %d bytes is %+v", len(of["two"].Images), film, got)
	}
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: team, Name: name}
}
