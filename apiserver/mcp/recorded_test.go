// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVersion1MatchesRecording compares the tools and responses of version 1 with a recording from before version 2,
// byte for byte. Since then only the descriptions of tools and fields were revised. testdata/version1.jsonl contains the
// requests, each followed by its response.
func TestVersion1MatchesRecording(t *testing.T) {
	t.Parallel()
	recording, err := os.ReadFile("testdata/version1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	address := newWorld().serve(t)
	lines := bufio.NewScanner(bytes.NewReader(recording))
	lines.Buffer(nil, 1<<20)
	rows := 0
	for ; lines.Scan(); rows++ {
		asked := lines.Text()
		if !lines.Scan() {
			t.Fatalf("%s has no recorded response", asked)
		}
		if diff := cmp.Diff(lines.Text(), send(t, "POST", address, "key", asked).body); diff != "" {
			t.Errorf("%s: -recorded +got:\n%s", asked, diff)
		}
	}
	if rows < 6 || lines.Err() != nil {
		t.Errorf("%d rows were recorded: %v", rows, lines.Err())
	}
}
