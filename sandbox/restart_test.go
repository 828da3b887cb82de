// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/sandbox"
)

// childDir, in the environment, makes the test binary a sandbox that runs until it is killed.
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

// TestKilled posts as fast as it can, kills the process in the middle, and compares what was acknowledged with what the
// next one knows.
func TestKilled(t *testing.T) {
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
	acknowledged := postUntilKilled("http://"+strings.TrimSpace(address), child.Process)
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
}

// postUntilKilled posts from several clients at once, kills the process after 100 answers, and returns all texts that
// were answered with 201.
func postUntilKilled(base string, process *os.Process) []string {
	var (
		mu  sync.Mutex
		out []string
		wg  sync.WaitGroup
	)
	client := &http.Client{}
	for worker := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("worker %d post %d", worker, i)
				req, err := http.NewRequest(http.MethodPost, base+"/x/2/tweets", strings.NewReader(textBody(text)))
				if err != nil {
					return
				}
				req.Header.Set("Authorization", "Bearer "+demoAccess)
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					return
				}
				_ = resp.Body.Close()
				mu.Lock()
				if resp.StatusCode == http.StatusCreated {
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
	gone := b.post("gone")
	b.call(http.MethodDelete, "/x/2/tweets/"+gone, demoAccess, "", "")
	b.tweet(`{"text":"reply","reply":{"in_reply_to_tweet_id":"` + first + `"},"made_with_ai":true}`)
	b.control(http.MethodPut, "/accounts/x/7", `{"quota":5,"listing_lag_ms":10,"token_ttl_s":77}`, http.StatusCreated)
	tokens := b.refresh("x-refresh-demo")
	posts := b.control(http.MethodGet, "/posts", "", http.StatusOK).list("data")
	account := b.control(http.MethodGet, "/accounts/x/7", "", http.StatusOK).at("data")
	timeline := b.get("/x/2/users/" + demoID + "/tweets?tweet.fields=conversation_id,made_with_ai,created_at").at("data")
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}

	c := &box{t: t, clock: b.clock}
	c.open(dir)
	sameBut := cmp.FilterPath(func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == "url" // the port is another
	}, cmp.Ignore())
	if diff := cmp.Diff(posts, c.control(http.MethodGet, "/posts", "", http.StatusOK).list("data"), sameBut); diff != "" {
		t.Errorf("posts (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(account, c.control(http.MethodGet, "/accounts/x/7", "", http.StatusOK).at("data"), sameBut); diff != "" {
		t.Errorf("account (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(timeline, c.get("/x/2/users/"+demoID+"/tweets?tweet.fields=conversation_id,made_with_ai,created_at").at("data")); diff != "" {
		t.Errorf("timeline (-before +after):\n%s", diff)
	}
	if r := c.tweet(textBody("first")); r.status != http.StatusForbidden {
		t.Errorf("a duplicate of a post before the restart: %d %s", r.status, r.body)
	}
	if r := c.refresh("x-refresh-demo"); r.text("error") != "invalid_grant" {
		t.Errorf("a refresh token used before the restart: %d %s", r.status, r.body)
	}
	if r := c.refresh(tokens.text("refresh_token")); r.status != http.StatusOK {
		t.Errorf("the refresh token given before the restart: %d %s", r.status, r.body)
	}
	if id := c.post("after"); id <= gone {
		t.Errorf("id %s after the restart is not above %s before it", id, gone)
	}
}

// crashCopy copies a state folder that is in use, as a kill would leave it, and adds a tail to the journal.
func crashCopy(t *testing.T, dir, tail string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "journal.jsonl"), append(content, tail...), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTornJournal(t *testing.T) {
	tests := []struct {
		name, reason, tail, wantErr string
	}{
		{"whole", "every line is there", "", ""},
		{"torn", "a line without an end was never acknowledged", `{"op":"post","post":{"pla`, ""},
		{
			"torn late in a long line", "nothing of it stays behind the next line",
			`{"op":"post","post":{"text":"` + strings.Repeat("long ", 1000), "",
		},
		{"torn just before its end", "nor was a line that lacks only its newline", `{"op":"reset"}`, ""},
		{"damaged", "a whole line that cannot be read is damage, and nothing is guessed", "{\"op\":\"post\n", "journal line 4"},
		{"from the future", "nor is what a later version wrote", "{\"op\":\"poll\"}\n", `operation "poll" is not known`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, t.TempDir())
			b.post("kept")
			copied := crashCopy(t, b.dir, tt.tail)
			if tt.wantErr != "" {
				_, err := sandbox.New(sandbox.Options{StateDir: copied})
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || !strings.Contains(err.Error(), copied) {
					t.Errorf("%s: error %v, want the folder and %q", tt.reason, err, tt.wantErr)
				}
				return
			}
			c := &box{t: t, clock: b.clock}
			c.open(copied)
			c.post("more")
			if content, err := os.ReadFile(filepath.Join(copied, "journal.jsonl")); err != nil || !bytes.HasSuffix(content, []byte("}\n")) {
				t.Errorf("%s: the journal does not end with a whole line (%v)", tt.reason, err)
			}
			d := &box{t: t, clock: b.clock}
			d.open(crashCopy(t, copied, ""))
			if diff := cmp.Diff([]string{"kept", "more"}, d.texts()); diff != "" {
				t.Errorf("%s; and it can be written on (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
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
	c.open(crashCopy(t, b.dir, ""))
	if got := len(c.texts()); got != workers*each {
		t.Errorf("%d posts after a restart, want %d", got, workers*each)
	}
}

// TestOneDuplicateWins sends the same text many times at once: exactly one may be posted.
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

// TestOneRotationWins uses the same refresh token many times at once: exactly one may get tokens.
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
