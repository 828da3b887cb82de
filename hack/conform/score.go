// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zegl/kube-score/config"
	"github.com/zegl/kube-score/domain"
	"github.com/zegl/kube-score/parser"
	kubescore "github.com/zegl/kube-score/score"
	"github.com/zegl/kube-score/scorecard"
	"sigs.k8s.io/yaml"
)

// finding is a deviation that kube-score reports.
type finding struct {
	check, object, rendering, words string
}

// explanation is the reason to ignore the findings of a check.
type explanation struct {
	Check string `json:"check"`
	// Objects are path.Match patterns for KIND/NAME, or for RENDERING:KIND/NAME.
	Objects []string `json:"objects"`
	Reason  string   `json:"reason"`
}

func readExplanations(file string) ([]explanation, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []explanation
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, e := range all {
		if e.Check == "" || e.Reason == "" || len(e.Objects) == 0 {
			return nil, fmt.Errorf("%s: each entry has check, objects and reason: %+v", file, e)
		}
	}
	return all, nil
}

// named is a reader with a name, as kube-score requires.
type named struct {
	io.Reader
	name string
}

func (n named) Name() string { return n.name }

// score runs all kube-score checks, including the optional ones.
func score(version string, renderings []rendering) ([]finding, error) {
	major, minor := 0, 0
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return nil, fmt.Errorf("the version %s of Kubernetes: %w", version, err)
	}
	settings := &config.RunConfiguration{
		EnabledOptionalTests: map[string]struct{}{}, KubernetesVersion: config.Semver{Major: major, Minor: minor},
		MinReplicasDeployment: 2, MinReplicasHPA: 2,
	}
	for _, check := range kubescore.RegisterAllChecks(parser.Empty(), nil, nil).All() {
		if check.Optional {
			settings.EnabledOptionalTests[check.ID] = struct{}{}
		}
	}
	var out []finding
	for _, r := range renderings {
		found, err := scoreOne(r, settings)
		if err != nil {
			return nil, fmt.Errorf("kube-score, %s: %w", r.name, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

func scoreOne(r rendering, settings *config.RunConfiguration) ([]finding, error) {
	p, err := parser.New(nil)
	if err != nil {
		return nil, err
	}
	objects, err := p.ParseFiles([]domain.NamedReader{named{bytes.NewReader(r.text), r.name}})
	if err != nil {
		return nil, err
	}
	card, err := kubescore.Score(objects, kubescore.RegisterAllChecks(objects, nil, settings), settings)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, object := range *card {
		for i := range object.Checks {
			check := &object.Checks[i]
			if check.Skipped || check.Grade >= scorecard.GradeAllOK {
				continue
			}
			out = append(out, finding{
				check: check.Check.ID, object: object.TypeMeta.Kind + "/" + object.ObjectMeta.Name, rendering: r.name, words: wordsOf(check.Comments),
			})
		}
	}
	return out, nil
}

func wordsOf(comments []scorecard.TestScoreComment) string {
	var out []string
	for _, c := range comments {
		out = append(out, strings.TrimSpace(strings.Join([]string{c.Path, c.Summary}, " ")))
	}
	return strings.Join(out, "; ")
}

// checkFindings returns an error for findings without an explanation, and for explanations that no finding needs.
func checkFindings(findings []finding, explained []explanation) error {
	used := map[string]bool{}
	var problems []string
	for _, f := range findings {
		why := explains(f, explained)
		if len(why) == 0 {
			problems = append(problems, fmt.Sprintf("kube-score, %s: %s: %s: %s (follow it, or explain in hack/conform/explained.yaml why not)",
				f.rendering, f.object, f.check, f.words))
		}
		for _, entry := range why {
			used[entry] = true
		}
	}
	for _, e := range explained {
		for _, object := range e.Objects {
			if !used[e.Check+" "+object] {
				problems = append(problems, fmt.Sprintf("hack/conform/explained.yaml: no finding is left for %s for %s; remove it", e.Check, object))
			}
		}
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(slices.Compact(problems), "\n"))
}

// explains returns the explanations that apply to a finding.
func explains(f finding, explained []explanation) (out []string) {
	for _, e := range explained {
		if e.Check != f.check {
			continue
		}
		for _, object := range e.Objects {
			for _, is := range []string{f.object, f.rendering + ":" + f.object} {
				if ok, err := path.Match(object, is); err == nil && ok {
					out = append(out, e.Check+" "+object)
				}
			}
		}
	}
	return out
}
