// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// source is a file or folder of config/ that is converted to templates, so the chart cannot drift from it.
type source struct {
	// from is relative to config/, and to is a folder in charts/herald/templates/.
	from, to string
	// turn converts a manifest to a template.
	turn func(text string) (string, error)
}

// rights is the folder that contains roles and policies, both in config/ and in the templates.
const rights = "rbac"

func sources() []source {
	web := `include "herald.web" .`
	return []source{
		{"crd/bases", "crds", always(definition)},
		{"rbac/manager/role.yaml", rights, func(text string) (string, error) { return scoped(text, "manager", "manager", "") }},
		{"rbac/apiserver/role.yaml", rights, func(text string) (string, error) { return scoped(text, "apiserver", "apiserver", "") }},
		{"rbac/role_bindings.yaml", rights, always(installed)},
		{"rbac/leader_election.yaml", rights, always(installed)},
		{"rbac/webhook.yaml", rights, onlyWhen(`include "herald.webhook.selfMade" .`)},
		{"rbac/team_secrets_role.yaml", rights, always(installed)},
		{"rbac/policies.yaml", rights, func(text string) (string, error) {
			template, err := selective(installed(text))
			return when(".Values.admissionPolicies.enabled", template), err
		}},
		{"rbac/priority.yaml", rights, onlyWhen(".Values.priorityAndFairness.enabled")},
		{"rbac/web/role.yaml", rights, func(text string) (string, error) { return scoped(text, "apiserver-web", "apiserver", web) }},
		{"rbac/web/bindings.yaml", rights, onlyWhen(web)},
		{"rbac/web/secret.yaml", rights, onlyWhen(web)},
		{"rbac/web/team_credentials_role.yaml", rights, onlyWhen(web)},
		{"rbac/metrics.yaml", rights, always(installed)},
		{"rbac/users", rights, always(installed)},
		{"webhook/webhook.yaml", "webhook", always(func(text string) string {
			return when(".Values.webhook.enabled", called(annotated(selectiveWebhook(installed(text)), "herald.webhook.annotations")))
		})},
		{"prometheus/rules-connections.yaml", "monitoring", always(alerts)},
		{"prometheus/rules-manager.yaml", "monitoring", always(func(text string) string {
			return strings.Replace(alerts(text), tooManyPosts+"100000\n", tooManyPosts+`{{ include "herald.tooManyPosts" . }}`+"\n", 1)
		})},
		{"prometheus/rules-posts.yaml", "monitoring", always(alerts)},
	}
}

// always wraps a conversion that cannot fail for use as a turn.
func always(turn func(text string) string) func(text string) (string, error) {
	return func(text string) (string, error) { return turn(text), nil }
}

// onlyWhen returns a turn for manifests that are installed only under the condition.
func onlyWhen(condition string) func(text string) (string, error) {
	return always(func(text string) string { return when(condition, installed(text)) })
}

// tooManyPosts is the comparison in the HeraldTooManyPosts alert, without the number, which is a chart value.
const tooManyPosts = "max by (namespace) (herald_post_index_posts) > "

// generate writes the generated files of a checkout: first the files of charts/herald, then the files in config/ that
// are generated from the chart.
func generate(checkout string) error {
	chart := filepath.Join(checkout, "charts", "herald")
	for _, folder := range []string{"crds", rights} {
		if err := os.RemoveAll(filepath.Join(chart, "templates", folder)); err != nil {
			return err
		}
	}
	for _, s := range sources() {
		if err := s.write(filepath.Join(checkout, "config"), filepath.Join(chart, "templates")); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(checkout, "config", "grafana", "herald.json"), filepath.Join(chart, "files", "dashboard.json")); err != nil {
		return err
	}
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	all, err := parseValues(values)
	if err != nil {
		return fmt.Errorf("values.yaml: %w", err)
	}
	schema, err := schemaOf(all)
	if err != nil {
		return err
	}
	template, err := os.ReadFile(filepath.Join(chart, "README.md.tmpl"))
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(chart, "values.schema.json"), schema, generated),
		os.WriteFile(filepath.Join(chart, "README.md"), bytes.Replace(template, []byte("<!-- values -->\n"), tableOf(all), 1), generated),
	)
	if err != nil {
		return err
	}
	return writeProcesses(checkout)
}

// copyFile copies a file that is not a template; a chart must contain all files it uses.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, generated)
}

func (s *source) write(config, templates string) error {
	tree := os.DirFS(config)
	return fs.WalkDir(tree, s.from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		to := filepath.Join(templates, s.to, s.name(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return err
		}
		head := fmt.Sprintf("{{- /* Written by `make manifests` from config/%s. */ -}}\n", name)
		template, err := s.turn(string(text))
		if err != nil {
			return fmt.Errorf("config/%s: %w", name, err)
		}
		return os.WriteFile(to, []byte(head+template), generated)
	})
}

// name returns the template's name for a file of config/: its path below the folder, joined by dashes.
func (s *source) name(path string) string {
	_, path, _ = strings.Cut(path, "/")
	if s.to == "crds" {
		return strings.TrimPrefix(path, "bases/social.herald.dev_")
	}
	return strings.NewReplacer("/", "-", "_", "-").Replace(path)
}

var (
	// ours matches the names that depend on the release: object names and the namespace. The API group, the label
	// app.kubernetes.io/name and the repository's URL do not depend on it.
	ours      = regexp.MustCompile(`(?m)\bherald-(?:social/)?|^  (?:name:|-) herald$`)
	labels    = regexp.MustCompile(`(?m)^  labels:\n    app\.kubernetes\.io/name: herald$`)
	unlabeled = regexp.MustCompile(`(?m)^(metadata:\n  name: .*\n)([^ ])`)
)

// generated is the mode of generated files, which are world-readable.
const generated = 0o644

const labelsTemplate = "  labels:\n    {{- include \"herald.labels\" . | nindent 4 }}"

// installed turns a manifest for the release herald in herald-system into a template for any release.
func installed(text string) string {
	text = escaped(text)
	text = strings.ReplaceAll(text, "herald-system", "{{ .Release.Namespace }}")
	text = labels.ReplaceAllString(text, labelsTemplate)
	text = unlabeled.ReplaceAllString(text, "${1}"+labelsTemplate+"\n${2}")
	return ours.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasSuffix(found, "/") {
			return found
		}
		return strings.Replace(found, "herald", `{{ include "herald.fullname" . }}`, 1)
	})
}

// escaped escapes braces that are not meant for Helm, such as those in alert annotations.
func escaped(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }

func when(condition, text string) string {
	return "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
}

// annotated calls a helper that adds annotations to the only object of the template.
func annotated(text, helper string) string {
	return strings.Replace(text, "  labels:\n", "  {{- with include \""+helper+"\" . }}\n  annotations:\n    {{- . | nindent 4 }}\n  {{- end }}\n  labels:\n", 1)
}

// called sets the webhook's path if cert-manager is used, because the manager then has no permission to set it.
func called(text string) string {
	return strings.Replace(text, "      port: 443\n",
		"      {{- if .Values.webhook.certManager.enabled }}\n      path: /validate-post\n      {{- end }}\n      port: 443\n", 1)
}

func alerts(text string) string {
	const more = "\n    {{- with .Values.metrics.prometheusRule.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}"
	text = strings.Replace(installed(text), labelsTemplate, labelsTemplate+more, 1)
	return when(".Values.metrics.prometheusRule.enabled", text)
}

// definition converts a CustomResourceDefinition to a template.
func definition(text string) string {
	const keep = "    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n"
	text = strings.Replace(escaped(text), "  annotations:\n", labelsTemplate+"\n  annotations:\n"+keep, 1)
	return when(".Values.crds.enabled", strings.TrimPrefix(text, "---\n"))
}
