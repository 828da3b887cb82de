// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

const (
	team = "acme"
	// connection is the name of the first account's Connection.
	connection = "sky"
	altText    = "a gray area"
	// deliveredWithin allows for lost calls: a post counts as absent only after the call's timeout, and each failed
	// upload doubles the pause before the next attempt.
	deliveredWithin = 10 * time.Minute
	pollEvery       = 200 * time.Millisecond
)

// herald is a running installation with a team, whose account on the server is connected.
type herald struct {
	env        *envtest.Environment
	site       string
	token      string
	kubeconfig string
	// accounts are the ids of the connected accounts, as forms send them.
	accounts       []string
	person, client *http.Client
	// manager is the running manager; restart replaces it with a new one.
	manager *managertest.Process
	restart func()
}

// startHerald starts a manager and an apiserver, both with Bluesky as their only platform. at is the site, or nil to
// serve it at the apiserver's address.
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

// setUp creates the team with an API key and a user, and connects an account with manifests.
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

// await waits until done returns true. Its error describes what is still missing.
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
	status, answer := h.call(t, http.MethodPost, "/api/v2/media/upload-url", fmt.Sprintf(`{"mime_type":%q,"size_bytes":%d,"name":%q,"alt_text":%q}`, kind, len(data), name, altText))
	var made struct {
		Data struct {
			ID  string `json:"media_id"`
			URL string `json:"upload_url"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("the upload gets the response %d %s", status, answer)
	}
	h.put(t, made.Data.URL, kind, data)
	return made.Data.ID
}

// put uploads a file to its URL.
func (h *herald) put(t *testing.T, address, kind string, data []byte) {
	t.Helper()
	if status, answer := h.send(t, h.client, http.MethodPut, address, kind, data, ""); status != http.StatusOK {
		t.Fatalf("the store responds %d %s", status, answer)
	}
}

// create creates a post through version 2.
func (h *herald) create(t *testing.T, post string) {
	t.Helper()
	if status, answer := h.call(t, http.MethodPost, "/api/v2/posts", post); status != http.StatusCreated {
		t.Fatalf("the post gets the response %d %s", status, answer)
	}
}

// web sends a form as the signed-in user, and returns the resulting page.
func (h *herald) web(t *testing.T, path string, form url.Values) string {
	t.Helper()
	status, page := h.send(t, h.person, http.MethodPost, h.site+path, "application/x-www-form-urlencoded", []byte(form.Encode()), "")
	if status != http.StatusOK {
		t.Fatalf("%s is answered %d %s", path, status, page)
	}
	return string(page)
}

// signIn signs the user in with a one-time link.
func (h *herald) signIn(t *testing.T) {
	t.Helper()
	secrets, err := kube.NewSecrets(h.env.Config, "herald-bluesky-test", managertest.Namespace)
	must.Succeed(t, err)
	link, err := session.AddLink(t.Context(), secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, time.Hour)
	must.Succeed(t, err)
	h.web(t, signin.LinkPath+link, url.Values{})
}

// posted waits until the team has n posts and all are published. It fails immediately if a post has failed or is
// undecided.
func (h *herald) posted(t *testing.T, n int) {
	t.Helper()
	h.await(t, "all posts", func() (bool, error) {
		var all v1alpha1.PostList
		if err := h.env.Client.List(t.Context(), &all, client.InNamespace(team)); err != nil {
			return false, err
		}
		var online int
		var waits []string
		for i := range all.Items {
			p := &all.Items[i]
			switch phase := posting.Of(p).Phase(); {
			case phase == v1alpha1.PhasePosted:
				online++
			case phase == v1alpha1.PhaseFailed, attempt.Undecided(posting.Of(p).Target(0)):
				t.Fatalf("%s is %s: %+v", p.Name, phase, p.Status)
			default:
				waits = append(waits, p.Name)
			}
		}
		return online == n, fmt.Errorf("%d of %d posts are online, and %v are not", online, n, waits)
	})
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: team, Name: name}
}
