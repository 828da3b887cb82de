// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/herald-social/herald/hack/local/supervisor"
)

// blueskyHandle is the account's handle on Bluesky's server, which reserves names such as demo.
const blueskyHandle = "herald-demo.test"

// FindBluesky returns the folder of Bluesky's server in a checkout, or "" if `make bluesky` has not installed it.
func FindBluesky(checkout string) string {
	folder := filepath.Join(checkout, "test", "bluesky")
	for _, needed := range []string{nodeIn(folder), filepath.Join(folder, "node_modules", "better-sqlite3", "build", "Release", "better_sqlite3.node")} {
		if _, err := os.Stat(needed); err != nil {
			return ""
		}
	}
	return folder
}

// NoBluesky returns instructions for installing Bluesky's server. A run does not install it, because that takes minutes
// and may fail. have reports whether a program is in PATH.
func NoBluesky(system string, have func(program string) bool) string {
	if system != "linux" {
		return "Bluesky's own server can be installed on Linux only."
	}
	var missing []string
	for _, program := range []string{"npm", "g++", "python3"} {
		if !have(program) {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return "`make bluesky` installs Bluesky's own server for the next run; it also needs " + strings.Join(missing, ", ") + "."
	}
	return "`make bluesky` installs Bluesky's own server for the next run (some minutes)."
}

// nodeIn returns the path of the Node.js that is installed with the server.
func nodeIn(folder string) string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return filepath.Join(folder, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
}

// BlueskyServer is Bluesky's own server, with one account.
func (s *Setup) BlueskyServer() supervisor.Spec {
	return supervisor.Spec{
		Name: Bluesky, Path: nodeIn(s.Bluesky), Grace: serverGrace, Ready: s.answers(Bluesky, "/xrpc/_health"),
		Args: []string{filepath.Join(s.Bluesky, "server.mjs"), "--port=" + strconv.Itoa(s.ports[Bluesky]), s.path(Bluesky), blueskyHandle},
	}
}

// BlueskyAccount returns the id and the access token of the account on Bluesky's server, which must be ready.
func (s *Setup) BlueskyAccount() (id, token string, err error) {
	data, err := os.ReadFile(filepath.Join(s.path(Bluesky), "state.json"))
	if err != nil {
		return "", "", err
	}
	var state struct {
		Accounts []struct {
			DID         string `json:"did"`
			Handle      string `json:"handle"`
			AppPassword string `json:"appPassword"`
		} `json:"accounts"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return "", "", fmt.Errorf("read the accounts of Bluesky's server: %w", err)
	}
	if len(state.Accounts) == 0 {
		return "", "", errors.New("there is no account on Bluesky's server")
	}
	account := &state.Accounts[0]
	return account.DID, account.Handle + ":" + account.AppPassword, nil
}
