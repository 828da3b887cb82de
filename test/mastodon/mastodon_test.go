// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mastodon runs independent clients of Mastodon's API on the simulated server, and uses them to read the posts
// that Herald publishes: masto and megalodon from npm, and github.com/mattn/go-mastodon. Without them, the simulator
// could repeat its author's mistakes.
package mastodon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/mastodon"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/sandboxtest"
)

// input is a client's standard input: the posts to read, and the content to publish.
type input struct {
	URL   string   `json:"url"`
	Token string   `json:"token"`
	Read  []string `json:"read"`
	Text  string   `json:"text"`
	Image string   `json:"image"`
	Video string   `json:"video"`
}

// attachment is a file of a post, with its focal point.
type attachment struct {
	Type        string  `json:"type"`
	Description string  `json:"description"`
	X           float64 `json:"x"`
	Y           float64 `json:"y"`
}

type post struct {
	ID         string       `json:"id"`
	Text       string       `json:"text"`
	HTML       string       `json:"html"`
	Visibility string       `json:"visibility"`
	Spoiler    string       `json:"spoiler"`
	Language   string       `json:"language"`
	Sensitive  bool         `json:"sensitive"`
	InReplyTo  string       `json:"inReplyTo"`
	Files      []attachment `json:"files"`
}

// result is a client's standard output.
type result struct {
	Acct string `json:"acct"`
	// Characters and PerURL are zero if the client does not report the server's limits.
	Characters int    `json:"characters"`
	PerURL     int    `json:"perURL"`
	Read       []post `json:"read"`
	// Written are a text, a reply to it with an image, and a video without a text. Repeated is the id that a repeated
	// call with the text's Idempotency-Key returned, or empty if the client does not support keys.
	Written  []post   `json:"written"`
	Repeated string   `json:"repeated"`
	Replies  []string `json:"replies"`
	// Listed are all posts of the account, read in pages of two.
	Listed []string `json:"listed"`
	// Refused are the statuses of a file that is used twice, a text that is too long, and a deleted post.
	Refused []int `json:"refused"`
	App     bool  `json:"app"`
}

// clients are the commands that run the clients, from this folder.
var clients = map[string][]string{
	"masto": {"node", "masto.mjs"}, "megalodon": {"node", "megalodon.mjs"}, "go-mastodon": {"go", "run", "-C", "gomastodon", "."},
}

func TestClients(t *testing.T) {
	for name, command := range clients {
		t.Run(name, func(t *testing.T) {
			if command[0] == "node" {
				if _, err := os.Stat(filepath.Join("node_modules", name)); err != nil {
					t.Skip("the client is not installed: make test-mastodon")
				}
			}
			runClient(t, command)
		})
	}
}

// site is a simulated server at the root of its address, as clients expect it.
func site(t *testing.T) (url string, control sandboxtest.Client) {
	t.Helper()
	server, err := sandbox.New(sandbox.Options{Lenient: true})
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, server.Close()) })
	all := httptest.NewServer(server)
	t.Cleanup(all.Close)
	root := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/mastodon/") {
			r.URL.Path = "/mastodon" + r.URL.Path
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(root.Close)
	return root.URL, sandboxtest.Client{URL: all.URL}
}

func runClient(t *testing.T, command []string) {
	t.Helper()
	url, control := site(t)
	account, err := control.Account(t.Context(), "mastodon", "7", map[string]any{"processing_ms": 300})
	must.Succeed(t, err)
	herald := mastodon.New(mastodon.Config{APIURL: url}, transport.New(transport.Options{}))
	who := platforms.Account{ID: account.ID, Username: account.Username, Token: platforms.Token{Access: account.AccessToken}}
	image, video := filepath.Join(probed, "picture.jpg"), filepath.Join(probed, "tenseconds.mp4")
	var want []post
	in := input{URL: url, Token: account.AccessToken, Text: "hello, from another client https://mastodon.example/#top", Image: absolute(t, image), Video: absolute(t, video)}
	for i, content := range contents(t, image, video) {
		if len(want) > 0 && content.InReplyTo != "" {
			content.InReplyTo = want[len(want)-1].ID
		}
		want = append(want, publish(t, herald, platforms.Job{
			Account: who, Content: content, Key: platforms.Key{Sum: [16]byte{byte(i)}}, SearchFrom: time.Now().Add(-time.Minute),
		}))
		in.Read = append(in.Read, want[len(want)-1].ID)
	}

	got := run(t, command, &in)

	for i := range got.Read {
		if html := got.Read[i].HTML; html == "" && got.Read[i].Text != "" || strings.Contains(html, "<chips>") {
			t.Errorf("the text %q is shown as %q", got.Read[i].Text, html)
		}
		got.Read[i].HTML = ""
	}
	if diff := cmp.Diff(want, got.Read); diff != "" {
		t.Errorf("what Herald published (-want +got):\n%s", diff)
	}
	check(t, &in, &got, account.Username)
	found, err := herald.Lookup(t.Context(), platforms.Job{Account: who, Content: platforms.Content{Category: v1alpha1.CategoryText, Text: in.Text}, SearchFrom: time.Now().Add(-time.Minute)})
	if err != nil || found.Matches != 1 || found.ExternalID != got.Written[0].ID {
		t.Errorf("Herald finds the client's post as %+v, %v", found, err)
	}
}

// check checks a client's posts and the server's responses.
func check(t *testing.T, in *input, got *result, username string) {
	t.Helper()
	if got.Acct != username || got.Characters != 0 && (got.Characters != 500 || got.PerURL != 23) || !got.App {
		t.Errorf("the account is %q, and the limits are %d and %d (app: %t)", got.Acct, got.Characters, got.PerURL, got.App)
	}
	if len(got.Written) != 3 {
		t.Fatalf("wrote %+v", got.Written)
	}
	for i := range got.Written {
		got.Written[i].HTML = ""
	}
	want := []post{
		{ID: got.Written[0].ID, Text: in.Text, Visibility: "unlisted", Language: "en", Files: []attachment{}},
		{
			ID: got.Written[1].ID, Text: "with a picture", Visibility: "public", Spoiler: "a picture follows", Sensitive: true, InReplyTo: got.Written[0].ID,
			Files: []attachment{{Type: "image", Description: "a picture", X: -0.5, Y: 0.25}},
		},
		{ID: got.Written[2].ID, Visibility: "public", Files: []attachment{{Type: "video"}}},
	}
	if diff := cmp.Diff(want, got.Written); diff != "" {
		t.Errorf("what the client published (-want +got):\n%s", diff)
	}
	if got.Repeated != "" && got.Repeated != got.Written[0].ID {
		t.Errorf("the same Idempotency-Key created another post, %s", got.Repeated)
	}
	if !slices.Equal(got.Replies, []string{got.Written[1].ID}) {
		t.Errorf("the replies are %v", got.Replies)
	}
	if listed := append([]string{got.Written[2].ID, got.Written[1].ID, got.Written[0].ID}, reversed(in.Read)...); !slices.Equal(got.Listed, listed) {
		t.Errorf("listed %v, want %v", got.Listed, listed)
	}
	if !slices.Equal(got.Refused, []int{422, 422, 404}) {
		t.Errorf("the statuses of refusals are %v", got.Refused)
	}
}

func reversed(ids []string) []string {
	out := slices.Clone(ids)
	slices.Reverse(out)
	return out
}

// probed has the sample files.
var probed = filepath.Join("..", "..", "internal", "media", "probe", "testdata")

func absolute(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	must.Succeed(t, err)
	return out
}

// contents returns the content that Herald publishes. A reply belongs to the previous content.
func contents(t *testing.T, image, video string) []platforms.Content {
	t.Helper()
	picture := file(t, image, v1alpha1.MimeJPEG)
	picture.AltText, picture.FocalPoint = "a \"cat\" & <dog>", &v1alpha1.FocalPoint{X: -42, Y: 69}
	return []platforms.Content{
		{Category: v1alpha1.CategoryText, Text: "Fish & <chips> #today\n\nhttps://mastodon.example/a?b=c&d=e"},
		{Category: v1alpha1.CategoryTree, Text: "a reply", InReplyTo: "the text", Media: []platforms.File{picture, file(t, image, v1alpha1.MimeJPEG)}},
		{
			Category: v1alpha1.CategoryVideo, Text: "a film", Media: []platforms.File{file(t, video, v1alpha1.MimeMP4)},
			Mastodon: v1alpha1.MastodonOptions{ContentWarning: "it is long", Visibility: v1alpha1.MastodonPrivate}, Language: "de",
		},
	}
}

// stored is a file in memory.
type stored []byte

// Open implements platforms.Bytes.
func (s stored) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s[offset : offset+length])), nil
}

// Address implements platforms.Bytes. Mastodon does not fetch files.
func (s stored) Address(context.Context, time.Duration) (string, error) {
	return "", errors.New("the file has no address")
}

func file(t *testing.T, path string, mimeType v1alpha1.MimeType) platforms.File {
	t.Helper()
	content, err := os.ReadFile(path)
	must.Succeed(t, err)
	return platforms.File{Name: filepath.Base(path), MIMEType: mimeType, Size: int64(len(content)), Bytes: stored(content)}
}

// publish publishes a job, and returns the post as clients should read it.
func publish(t *testing.T, herald *mastodon.Platform, job platforms.Job) post {
	t.Helper()
	c := &job.Content
	if herald.Prepares(*c) {
		checkpoint, failure := herald.Prepare(t.Context(), job)
		if failure != nil {
			t.Fatal(failure, failure.Err)
		}
		job.Checkpoint = checkpoint
	}
	got := herald.Publish(t.Context(), job)
	if got.Outcome != platforms.Posted {
		t.Fatalf("got %+v (%v)", got, got.Err)
	}
	out := post{
		ID: got.ExternalID, Text: c.Text, Visibility: "public", Spoiler: c.Mastodon.ContentWarning, Language: c.Language,
		Sensitive: c.Mastodon.ContentWarning != "", InReplyTo: c.InReplyTo, Files: []attachment{},
	}
	if c.Mastodon.Visibility != "" {
		out.Visibility = string(c.Mastodon.Visibility)
	}
	for i := range c.Media {
		f := &c.Media[i]
		a := attachment{Type: "image", Description: f.AltText}
		if f.IsVideo() {
			a.Type = "video"
		}
		if f.FocalPoint != nil {
			a.X, a.Y = float64(f.FocalPoint.X)/100, float64(f.FocalPoint.Y)/100
		}
		out.Files = append(out.Files, a)
	}
	return out
}

// run runs a client.
func run(t *testing.T, command []string, in *input) (out result) {
	t.Helper()
	content, err := json.Marshal(in)
	must.Succeed(t, err)
	program := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var said, failed bytes.Buffer
	program.Stdin, program.Stdout, program.Stderr = bytes.NewReader(content), &said, &failed
	if err := program.Run(); err != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	if err := json.Unmarshal(said.Bytes(), &out); err != nil {
		t.Fatalf("%v in %s", err, said.String())
	}
	return out
}
