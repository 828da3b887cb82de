// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGenerate(t *testing.T) {
	t.Parallel()
	const v1 = "openapi: 3.0.3\ninfo:\n  description: One.\nschema:\n  type: string\n  nullable: true\n  example: a\nrequired: [a]\n"
	for name, tc := range map[string]struct{ reason, changes, want, fails string }{
		"Merged": {
			"mappings are merged, values replaced and lists and texts extended",
			"openapi: 3.1.0\ninfo:\n  description+: Two.\n  title: T\nrequired+: [b]\n",
			"openapi: 3.1.0\ninfo:\n  description: |-\n    One.\n\n    Two.\n  title: T\nschema:\n  type: [string, \"null\"]\n  examples:\n    - a\nrequired: [a, b]\n", "",
		},
		"Alias": {
			"an alias survives the removal of its anchor",
			"openapi: 3.1.0\ninfo: &x\n  title: T\nother: *x\n",
			"openapi: 3.1.0\ninfo:\n  description: One.\n  title: T\nschema:\n  type: [string, \"null\"]\n  examples:\n    - a\nrequired: [a]\nother:\n  title: T\n", "",
		},
		"NothingToExtend": {"a misspelt field would otherwise add nothing", "requierd+: [b]\n", "", "/requierd: version 1 does not have it"},
		"AnotherKind":     {"a text cannot be appended to a list", "required+: b\n", "", "/required: cannot append"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := generate([]byte(v1), []byte(tc.changes))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.TrimPrefix(string(got), note)); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}
