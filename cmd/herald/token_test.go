// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/test/must"
)

func TestPrintToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   []string
		wrong  bool
	}{
		"Bound":       {"a token belongs to one key", []string{"--namespace", "team-acme", "--name", "ci"}, false},
		"NoNamespace": {"its hash would match no token", []string{"--name", "ci"}, true},
		"NoName":      {"its hash would match no token", []string{"--namespace", "team-acme"}, true},
		"Stray":       {"the argument may be a flag without dashes", []string{"--namespace", "team-acme", "--name", "ci", "x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := printToken(&out, tc.args)
			if usage := (process.UsageError{}); errors.As(err, &usage) != tc.wrong || !tc.wrong && err != nil {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if tc.wrong {
				return
			}
			var got struct{ Token, SHA256 string }
			must.Succeed(t, yaml.Unmarshal([]byte(out.String()), &got))
			id, ok := apitoken.Parse(got.Token)
			if !ok || id != apitoken.ID("team-acme", "ci") || got.SHA256 != apitoken.Hash("team-acme", "ci", got.Token) {
				t.Errorf("%s: printed %q", tc.reason, out.String())
			}
		})
	}
}
