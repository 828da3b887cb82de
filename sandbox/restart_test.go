// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bufio"
	"fmt"
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
	"sync/atomic"
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

// poster publishes a text post on a sandbox and reports whether the post was acknowledged.
type poster func(send sender, text string) (acknowledged bool, err error)

// sender sends a form or JSON to a path or address of the sandbox. It returns an error if there is no response.
type sender func(method, address, platform, contentType, body string, headers ...string) (reply, error)

// senderTo returns a sender for a sandbox. It does not fail the test, since requests fail during the kill.
func senderTo(base string) sender {
	client := &http.Client{}
	return func(method, address, platform, contentType, body string, headers ...string) (reply, error) {
		if strings.HasPrefix(address, "/") {
			address = base + address
		}
		req, err := http.NewRequest(method, address, strings.NewReader(body))
		if err != nil {
			return reply{}, err
		}
		if platform != "" {
			req.Header.Set("Authorization", "Bearer "+platform+"-access-demo")
		}
		for _, header := range append(headers, "Content-Type: "+contentType) {
			name, value, _ := strings.Cut(header, ": ")
			req.Header.Set(name, value)
		}
		return (&box{client: client}).do(req)
	}
}

// postOn publishes a text post with one request.
func postOn(platform, path, contentType string, body func(text string) string) poster {
	return func(send sender, text string) (bool, error) {
		r, err := send(http.MethodPost, path, platform, contentType, body(text))
		return r.status/100 == 2, err
	}
}

func postOnThreads(send sender, text string) (bool, error) {
	r, err := send(http.MethodPost, threadsPath+"/threads", "threads", formType, "media_type=TEXT&text="+url.QueryEscape(text))
	if err != nil {
		return false, err
	}
	r, err = send(http.MethodPost, threadsPath+"/threads_publish", "threads", formType, "creation_id="+r.text("id"))
	return r.text("id") != "", err
}

func videoOnTikTok(send sender, text string) (bool, error) {
	body := "{" + strings.Replace(directPost, "Launch #demo", text, 1) + "," + fromFile(len(shortFilm), len(shortFilm), 1) + "}"
	r, err := send(http.MethodPost, tiktokPublish+"video/init/", "tiktok", jsonUTF8, body)
	if err != nil {
		return false, err
	}
	whole := contentRange(0, len(shortFilm), len(shortFilm))
	r, err = send(http.MethodPut, r.text("data", "upload_url"), "", "video/mp4", string(shortFilm), whole)
	return r.status/100 == 2, err
}

func TestKilled(t *testing.T) {
	for name, post := range map[string]poster{
		"x": postOn("x", "/x/2/tweets", jsonType, textBody), "threads": postOnThreads, "tiktok": videoOnTikTok,
		"facebook": postOn("facebook", pagePath+"/feed", formType, func(text string) string { return "message=" + url.QueryEscape(text) }),
	} {
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
			t.Errorf("%q appears twice", text)
		}
		kept[text] = true
	}
	for _, text := range acknowledged {
		if !kept[text] {
			t.Errorf("%q was acknowledged but is missing", text)
		}
	}
	if len(kept) > len(acknowledged)+killedWorkers {
		t.Errorf("%d posts exist, %d were acknowledged", len(kept), len(acknowledged))
	}
}

// killedWorkers is the number of concurrent clients when the process is killed.
const killedWorkers = 4

// postUntilKilled posts concurrently from several clients, kills the process after 100 responses, and returns the text
// of all acknowledged posts.
func postUntilKilled(base string, process *os.Process, post poster) []string {
	var (
		mu  sync.Mutex
		out []string
		wg  sync.WaitGroup
	)
	send := senderTo(base)
	for worker := range killedWorkers {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("worker %d post %d", worker, i)
				acknowledged, err := post(send, text)
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
	b := start(t, t.TempDir())
	first := b.post("first")
	b.tweet(replyBody("reply", first))
	b.account("x", "7", `{"quota":5,"listing_lag_ms":10,"token_ttl_s":77}`)
	tokens := b.refresh("x-refresh-demo")
	// kept returns the state that a restart must preserve.
	kept := func(b *box) []any {
		return []any{
			b.control(http.MethodGet, "/posts", "", http.StatusOK).at("data"),
			b.control(http.MethodGet, "/accounts/x/7", "", http.StatusOK).at("data"),
			b.get(timeline + "?tweet.fields=conversation_id,created_at").at("data"),
		}
	}
	before := kept(b)
	c := b.restart()
	sameBut := cmp.FilterPath(func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == "url" // the port differs
	}, cmp.Ignore())
	same(t, "posts, an account and a timeline", before, kept(c), sameBut)
	c.tweet(textBody("first")).want(t, "a duplicate of an earlier post", 403)
	c.refresh("x-refresh-demo").want(t, "a refresh token that was used up", "error=invalid_request")
	c.refresh(tokens.text("refresh_token")).want(t, "a refresh token that was issued", 200)
	if id := c.post("after"); id <= first {
		t.Errorf("ID %s after the restart is not above %s before it", id, first)
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
	same(t, "different IDs", workers*each, len(slices.Compact(ids)))
	same(t, "every post is listed once, in order of creation", ids, b.control(http.MethodGet, "/posts", "", http.StatusOK).ids())
	c := &box{t: t, clock: b.clock}
	c.open(crashCopy(t, b.dir))
	same(t, "posts after a kill", workers*each, len(c.texts()))
}

// TestOneConcurrentRequestSucceeds sends the same request concurrently. Exactly one must succeed.
func TestOneConcurrentRequestSucceeds(t *testing.T) {
	b := start(t, t.TempDir())
	container := b.container(query("text=once"))
	b.clock.Step(time.Second)
	for _, tt := range []struct{ why, path, platform, contentType, body, refusal string }{
		{"posts with the same text", "/x/2/tweets", "x", jsonType, textBody("same"), "~duplicate content"},
		{
			"uses of a refresh token", xToken, "", formType, "grant_type=refresh_token&client_id=c&refresh_token=x-refresh-demo",
			"error=invalid_request",
		},
		{"publications of a container", threadsPath + "/threads_publish", "threads", formType, "creation_id=" + container, "error.code=24"},
	} {
		send := senderTo(b.http.URL)
		var (
			wins atomic.Int32
			wg   sync.WaitGroup
		)
		for range 16 {
			wg.Go(func() {
				r, err := send(http.MethodPost, tt.path, tt.platform, tt.contentType, tt.body)
				if err == nil && r.status < 300 {
					wins.Add(1)
					return
				}
				r.want(t, tt.why, tt.refusal)
			})
		}
		wg.Wait()
		same(t, tt.why+" that succeed", int32(1), wins.Load())
	}
	same(t, "posts", []string{"same", "once"}, b.texts())
}
