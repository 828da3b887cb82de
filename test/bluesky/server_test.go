// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bluesky tests platforms/bluesky against Bluesky's own server (npm: @atproto/pds), and reads everything back
// with Bluesky's own client (npm: @atproto/api). The same tests run against the simulated server, which would otherwise
// just repeat its author's mistakes.
package bluesky

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// account is an account on the server.
type account struct {
	DID         string `json:"did"`
	Handle      string `json:"handle"`
	Password    string `json:"password"`
	AppPassword string `json:"appPassword"`
}

// token returns the account's access token, as in a Connection's Secret.
func (a *account) token() string { return a.Handle + ":" + a.AppPassword }

// server is a running server, with its directory and its accounts.
type server struct {
	URL       string    `json:"url"`
	Directory string    `json:"directory"`
	Accounts  []account `json:"accounts"`
}

// node returns the path of the Node.js that make test-bluesky installs.
func node(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	path, err := filepath.Abs(filepath.Join("node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node"))
	must.Succeed(t, err)
	if _, err := os.Stat(filepath.Join("node_modules", "better-sqlite3", "build", "Release", "better_sqlite3.node")); err != nil {
		t.Skip("Bluesky's server is not installed: make test-bluesky")
	}
	return path
}

// start starts a server with accounts, which stops when the test ends. Options of server.mjs may be among the handles.
func start(t *testing.T, handles ...string) *server { return startWith(t, nil, handles...) }

// startWith starts a server as start does, with additional environment variables.
func startWith(t *testing.T, environment []string, handles ...string) *server {
	t.Helper()
	command := exec.Command(node(t), append([]string{"server.mjs", t.TempDir()}, handles...)...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.Succeed(t, err)
	command.Stderr = log
	// The server also logs to its standard output, so the line is recognized by its prefix.
	command.Env = append(append(os.Environ(), "LOG_ENABLED=false"), environment...)
	input, err := command.StdinPipe()
	must.Succeed(t, err)
	output, err := command.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, command.Start())
	t.Cleanup(func() {
		must.Succeed(t, input.Close())
		if err := command.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		must.Succeed(t, log.Close())
	})
	lines := bufio.NewScanner(output)
	var s server
	for lines.Scan() && s.URL == "" {
		if line := lines.Text(); strings.HasPrefix(line, `{"url"`) {
			must.Succeed(t, json.Unmarshal([]byte(line), &s))
			return &s
		}
	}
	said, _ := os.ReadFile(log.Name())
	t.Fatalf("the server did not start: %s", said)
	return nil
}

// post is a post as Bluesky's client reads it.
type post struct {
	URI  string `json:"uri"`
	CID  string `json:"cid"`
	Text string `json:"text"`
	// Problem describes how the record violates its lexicon.
	Problem string    `json:"problem"`
	Facets  []segment `json:"facets"`
	Images  []file    `json:"images"`
	Video   *file     `json:"video"`
	Card    *card     `json:"card"`
	Root    *ref      `json:"root"`
	Parent  *ref      `json:"parent"`
	// Languages are the tags in the record.
	Languages []string `json:"languages"`
}

// segment is a part of the text that the client displays as a link.
type segment struct {
	Text    string `json:"text"`
	Link    string `json:"link"`
	Mention string `json:"mention"`
	Tag     string `json:"tag"`
}

// file is a post's file. Downloaded is the number of bytes that the server returned for it.
type file struct {
	MIME       string `json:"mime"`
	Size       int    `json:"size"`
	Downloaded int    `json:"downloaded"`
	Alt        string `json:"alt"`
	Width      int    `json:"width"`
	Height     int    `json:"height"`
}

// card is a link card.
type card struct {
	URI         string `json:"uri"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Thumb       *file  `json:"thumb"`
}

type ref struct {
	URI string `json:"uri"`
	CID string `json:"cid"`
}

// read returns the account's posts, oldest first.
func (s *server) read(t *testing.T, a *account) []post {
	t.Helper()
	command := exec.CommandContext(t.Context(), node(t), "read.mjs", s.URL, a.DID)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	var posts []post
	for line := range strings.Lines(string(output)) {
		var p post
		must.Succeed(t, json.Unmarshal([]byte(line), &p))
		if p.Problem != "" {
			t.Errorf("%s is not valid: %s", p.URI, p.Problem)
		}
		posts = append(posts, p)
	}
	return posts
}
