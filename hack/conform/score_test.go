// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestExplanations(t *testing.T) {
	found := finding{check: "pod-probes", object: "Deployment/herald-store", rendering: "evaluation", words: "no probe"}
	for _, row := range []struct {
		findings []finding
		objects  []string
		wrong    string
		reason   string
	}{
		{[]finding{found}, []string{"Deployment/herald-store"}, "", "an explanation of a named object"},
		{[]finding{found}, []string{"Deployment/*"}, "", "an explanation with a pattern"},
		{[]finding{found}, []string{"evaluation:Deployment/*"}, "", "an explanation for one rendering"},
		{[]finding{found}, nil, "kube-score, evaluation: Deployment/herald-store: pod-probes: no probe", "a finding without an explanation"},
		{[]finding{found}, []string{"full:Deployment/*"}, "no finding is left", "an explanation for a different rendering"},
		{[]finding{found}, []string{"Deployment/*", "Service/*"}, "pod-probes for Service/*; remove it", "one of two patterns does not match"},
		{nil, []string{"Deployment/*"}, "no finding is left", "an explanation without a finding"},
	} {
		var explained []explanation
		if row.objects != nil {
			explained = []explanation{{Check: "pod-probes", Objects: row.objects, Reason: "a test"}}
		}
		err := checkFindings(row.findings, explained)
		if row.wrong == "" && err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if row.wrong != "" && (err == nil || !strings.Contains(err.Error(), row.wrong)) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.wrong)
		}
	}
}

// TestOptionalChecksAreRun covers the optional checks, which the library runs only if they are requested by name.
func TestOptionalChecksAreRun(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a:v1}]}\n"
	findings, err := score("1.32.2", []rendering{{name: "test", text: []byte(pod)}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range findings {
		seen[f.check] = true
	}
	for _, check := range []string{"container-resources", "container-seccomp-profile"} {
		if !seen[check] {
			t.Errorf("%s has no findings for an empty Pod: %v", check, seen)
		}
	}
}
