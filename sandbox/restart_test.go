// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/sandbox"
)

// childDir is the environment variable that turns the test binary into a sandbox that runs until it is killed.
const childDir = "SANDBOX_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, serveUntilKilled(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir string) error {
	server, err := sandbox.New(sandbox.Options{StateDir: dir})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, server)
}

// poster publishes a text on a sandbox and reports whether the post was acknowledged.
type poster func(client *http.Client, base, text string) (acknowledged bool, err error)

// send makes a request and returns the created object's ID; "" if it was rejected.
func send(client *http.Client, address, token, contentType, body string) (string, error) {
	req, err := http.NewRequest(http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	r := reply{status: resp.StatusCode, body: string(content)}
	return r.text("id") + r.text("data", "id"), nil // the platforms differ in the ID's path
}

func postOnX(client *http.Client, base, text string) (bool, error) {
	id, err := send(client, base+"/x/2/tweets", demoAccess, "application/json", textBody(text))
	return id != "", err
}

func postOnThreads(client *http.Client, base, text string) (bool, error) {
	const token = "threads-access-demo"
	container, err := send(client, base+threadsPath+"/threads", token, formType, url.Values{"media_type": {"TEXT"}, "text": {text}}.Encode())
	if err != nil {
		return false, err
	}
	id, err := send(client, base+threadsPath+"/threads_publish", token, formType, "creation_id="+container)
	return id != "", err
}

func postOnFacebook(client *http.Client, base, text string) (bool, error) {
	id, err := send(client, base+pagePath+"/feed", "facebook-access-demo", formType, url.Values{"message": {text}}.Encode())
	return id != "", err
}

func TestKilled(t *testing.T) {
	for name, post := range map[string]poster{"x": postOnX, "threads": postOnThreads, "facebook": postOnFacebook} {
		t.Run(name, func(t *testing.T) { testKilled(t, post) })
	}
}

// testKilled posts continuously, kills the process, and compares the acknowledged posts with the next process's state.
func testKilled(t *testing.T, post poster) {
	t.Helper()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + strings.TrimSpace(address)
	running := &box{t: t, http: &httptest.Server{URL: base}, client: &http.Client{}}
	running.control(http.MethodPut, "/accounts/threads/"+threadsID, `{"processing_ms":0}`, http.StatusOK)
	acknowledged := postUntilKilled(base, child.Process, post)
	_ = child.Wait() // it was killed
	if len(acknowledged) < 100 {
		t.Fatalf("only %d posts before the kill", len(acknowledged))
	}

	b := start(t, dir)
	kept := map[string]bool{}
	for _, text := range b.texts() {
		if kept[text] {
			t.Errorf("%q is there twice", text)
		}
		kept[text] = true
	}
	for _, text := range acknowledged {
		if !kept[text] {
			t.Errorf("%q was acknowledged and is lost", text)
		}
	}
	if len(kept) > len(acknowledged)+killedWorkers {
		t.Errorf("%d posts are there, %d were acknowledged", len(kept), len(acknowledged))
	}
}

// killedWorkers is the number of concurrent clients at the kill.
const killedWorkers = 4

// postUntilKilled posts concurrently from several clients, kills the process after 100 responses, and returns all acknowledged texts.
func postUntilKilled(base string, process *os.Process, post poster) []string {
	var (
		mu  sync.Mutex
		out []string
		wg  sync.WaitGroup
	)
	client := &http.Client{}
	for worker := range killedWorkers {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("worker %d post %d", worker, i)
				acknowledged, err := post(client, base, text)
				if err != nil {
					return
				}
				mu.Lock()
				if acknowledged {
					out = append(out, text)
				}
				if len(out) == 100 {
					_ = process.Kill() // the next request of each worker fails
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return out
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	first := b.post("first")
	b.tweet(`{"text":"reply","reply":{"in_reply_to_tweet_id":"` + first + `"}}`)
	b.control(http.MethodPut, "/accounts/x/7", `{"quota":5,"listing_lag_ms":10,"token_ttl_s":77}`, http.StatusCreated)
	tokens := b.refresh("x-refresh-demo")
	posts := b.control(http.MethodGet, "/posts", "", http.StatusOK).list("data")
	account := b.control(http.MethodGet, "/accounts/x/7", "", http.StatusOK).at("data")
	timeline := b.get("/x/2/users/" + demoID + "/tweets?tweet.fields=conversation_id,created_at").at("data")
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}

	c := &box{t: t, clock: b.clock}
	c.open(dir)
	sameBut := cmp.FilterPath(func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == "url" // the port differs
	}, cmp.Ignore())
	if diff := cmp.Diff(posts, c.control(http.MethodGet, "/posts", "", http.StatusOK).list("data"), sameBut); diff != "" {
		t.Errorf("posts (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(account, c.control(http.MethodGet, "/accounts/x/7", "", http.StatusOK).at("data"), sameBut); diff != "" {
		t.Errorf("account (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(timeline, c.get("/x/2/users/"+demoID+"/tweets?tweet.fields=conversation_id,created_at").at("data")); diff != "" {
		t.Errorf("timeline (-before +after):\n%s", diff)
	}
	if r := c.tweet(textBody("first")); r.status != http.StatusForbidden {
		t.Errorf("a duplicate of a post before the restart: %d %s", r.status, r.body)
	}
	if r := c.refresh("x-refresh-demo"); r.text("error") != "invalid_request" {
		t.Errorf("a refresh token used before the restart: %d %s", r.status, r.body)
	}
	if r := c.refresh(tokens.text("refresh_token")); r.status != http.StatusOK {
		t.Errorf("the refresh token given before the restart: %d %s", r.status, r.body)
	}
	if id := c.post("after"); id <= first {
		t.Errorf("id %s after the restart is not above %s before it", id, first)
	}
}

// TestReopenContainers restarts during a publication on Threads, and after one on Facebook.
func TestReopenContainers(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	done, waiting := b.container(url.Values{"text": {"done"}}), b.container(url.Values{"text": {"waiting"}})
	b.clock.Step(time.Second)
	first := b.publishContainer(done).text("id")
	b.onPage("page")
	b.clock.Step(24 * time.Hour)
	renewed := b.read("threads", "/threads/refresh_access_token?grant_type=th_refresh_token").text("access_token")
	rotated := tiktokRefresh(b, "tiktok-refresh-demo").text("refresh_token")
	b.clock.Step(-24 * time.Hour)
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}

	c := &box{t: t, clock: b.clock}
	c.open(dir)
	if got := []string{c.containerStatus(done), c.containerStatus(waiting)}; got[0] != "PUBLISHED" || got[1] != "FINISHED" {
		t.Errorf("the containers are %v", got)
	}
	if r := c.publishContainer(done); r.at("error", "code") != 24.0 {
		t.Errorf("a container published before the restart: %d %s", r.status, r.body)
	}
	second := c.publishContainer(waiting).text("id")
	if r := c.read("threads", "/threads/v1.0/"+second+"?fields=text"); r.text("text") != "waiting" {
		t.Errorf("a container made before the restart: %d %s", r.status, r.body)
	}
	if diff := cmp.Diff([]string{second, first}, c.read("threads", threadsPath+"/threads").ids()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := c.form("facebook", pagePath+"/feed", url.Values{"message": {"page"}}); r.at("error", "code") != 506.0 {
		t.Errorf("a duplicate of a post before the restart: %d %s", r.status, r.body)
	}
	if r := c.call(http.MethodGet, "/threads/v1.0/me", renewed, "", ""); r.status != http.StatusOK {
		t.Errorf("a token renewed before the restart: %d %s", r.status, r.body)
	}
	if r := c.call(http.MethodGet, "/threads/refresh_access_token?grant_type=th_refresh_token", renewed, "", ""); r.at("error", "code") != 100.0 {
		t.Errorf("its age is known after the restart: %d %s", r.status, r.body)
	}
	if r := tiktokRefresh(c, rotated); r.status != http.StatusOK {
		t.Errorf("a refresh token given before the restart: %d %s", r.status, r.body)
	}
	c.clock.Step(400 * 24 * time.Hour)
	if r := c.read("facebook", "/facebook/v25.0/me"); r.status != http.StatusOK {
		t.Errorf("a token without an end: %d %s", r.status, r.body)
	}
}

// crashCopy copies a state folder in use, as left by a kill.
func crashCopy(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "state.db"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	if _, err := sandbox.New(sandbox.Options{StateDir: dir}); err == nil || !strings.Contains(err.Error(), "another sandbox") {
		t.Errorf("error %v, want that another sandbox uses the folder", err)
	}
}

func TestConcurrency(t *testing.T) {
	b := start(t, t.TempDir())
	const workers, each = 8, 40
	var (
		mu  sync.Mutex
		ids []string
		wg  sync.WaitGroup
	)
	tokens := make([]string, workers)
	for w := range workers {
		r := b.control(http.MethodPut, fmt.Sprintf("/accounts/x/%d", 100+w/2), "", []int{http.StatusCreated, http.StatusOK}[w%2])
		tokens[w] = r.text("data", "access_token")
	}
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				r, err := b.try(http.MethodPost, "/x/2/tweets", tokens[w], "application/json", textBody(fmt.Sprintf("%d of %d", i, w)))
				if err != nil || r.status != http.StatusCreated {
					t.Errorf("post: %v %d %s", err, r.status, r.body)
					return
				}
				mu.Lock()
				ids = append(ids, r.text("data", "id"))
				mu.Unlock()
				_, _ = b.try(http.MethodGet, fmt.Sprintf("/x/2/users/%d/tweets", 100+w/2), tokens[w], "", "")
				_, _ = b.try(http.MethodGet, "/accounts/x/100", "", "", "")
				if i%20 == 0 {
					_, _ = b.try(http.MethodPut, fmt.Sprintf("/_control/accounts/x/%d", 100+w/2), "", "application/json", `{"private":true}`)
					_, _ = b.try(http.MethodPost, "/_control/faults", "", "application/json",
						`{"platform":"x","operation":"list","kind":"status"}`)
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	if len(slices.Compact(ids)) != workers*each {
		t.Errorf("ids are not unique")
	}
	var listed []string
	for _, post := range b.control(http.MethodGet, "/posts", "", http.StatusOK).list("data") {
		object, _ := post.(map[string]any)
		id, _ := object["id"].(string)
		listed = append(listed, id)
	}
	if diff := cmp.Diff(ids, listed); diff != "" {
		t.Errorf("every post is listed once, in order of creation (-want +got):\n%s", diff)
	}
	c := &box{t: t, clock: b.clock}
	c.open(crashCopy(t, b.dir))
	if got := len(c.texts()); got != workers*each {
		t.Errorf("%d posts after a restart, want %d", got, workers*each)
	}
}

// TestOneDuplicateWins sends the same text concurrently. Exactly one may be posted.
func TestOneDuplicateWins(t *testing.T) {
	b := start(t, "")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { _, _ = b.try(http.MethodPost, "/x/2/tweets", demoAccess, "application/json", textBody("same")) })
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"same"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOneRotationWins uses the same refresh token concurrently. Exactly one call may get tokens.
func TestOneRotationWins(t *testing.T) {
	b := start(t, "")
	var (
		mu   sync.Mutex
		wins int
		wg   sync.WaitGroup
	)
	for range 16 {
		wg.Go(func() {
			r, err := b.try(http.MethodPost, "/x/2/oauth2/token", "", "application/x-www-form-urlencoded",
				"grant_type=refresh_token&client_id=c&refresh_token=x-refresh-demo")
			if err == nil && r.status == http.StatusOK {
				mu.Lock()
				wins++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if wins != 1 {
		t.Errorf("%d of 16 got tokens, want 1", wins)
	}
}
