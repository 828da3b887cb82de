// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type props = apiextensionsv1.JSONSchemaProps

// narrowed returns the parts of the schema that reject or drop values written by an earlier version. The earlier
// version still writes them while it runs next to the new one, and after a rollback. It writes a complete status
// without the new fields, so transition rules (oldSelf) must not depend on them. rules are the rules of the enclosing
// schemas.
func narrowed(earlier, now *props, path string, rules []string) (problems []string) {
	report := func(problem string) { problems = append(problems, path+": "+problem) }
	for _, rule := range now.XValidations {
		rules = append(slices.Clip(rules), rule.Rule)
	}
	if earlier.Type != now.Type {
		report("the type was " + earlier.Type)
	}
	for _, name := range now.Required {
		if !slices.Contains(earlier.Required, name) {
			report(name + " was not required")
		}
	}
	if known := values(earlier); len(now.Enum) > 0 && (len(known) == 0 || slices.ContainsFunc(known, func(v string) bool { return !slices.Contains(values(now), v) })) {
		report("a value is no longer accepted")
	}
	if less(now.MaxLength, earlier.MaxLength) || less(now.MaxItems, earlier.MaxItems) || less(now.MaxProperties, earlier.MaxProperties) {
		report("a limit is lower")
	}
	for name := range now.Properties {
		inner := now.Properties[name]
		before, known := earlier.Properties[name]
		if known {
			problems = append(problems, narrowed(&before, &inner, path+"."+name, rules)...)
			continue
		}
		named := regexp.MustCompile(`\.\??` + regexp.QuoteMeta(name) + `\b`)
		if slices.ContainsFunc(rules, func(rule string) bool { return strings.Contains(rule, "oldSelf") && named.MatchString(rule) }) {
			report("a transition rule covers the new field " + name)
		}
	}
	for name := range earlier.Properties {
		if _, known := now.Properties[name]; !known {
			report(name + " was removed")
		}
	}
	if earlier.Items != nil && now.Items != nil && earlier.Items.Schema != nil && now.Items.Schema != nil {
		problems = append(problems, narrowed(earlier.Items.Schema, now.Items.Schema, path+"[]", rules)...)
	}
	slices.Sort(problems)
	return problems
}

func values(s *props) (out []string) {
	for _, v := range s.Enum {
		out = append(out, string(v.Raw))
	}
	return out
}

// less reports whether a limit is new, or lower than the earlier limit.
func less(now, earlier *int64) bool { return now != nil && (earlier == nil || *now < *earlier) }

// narrowedBetween compares the CRDs in two directories.
func narrowedBetween(earlier, now string) (problems []string, err error) {
	files, err := filepath.Glob(filepath.Join(earlier, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var is [2]apiextensionsv1.CustomResourceDefinition
		for i, name := range []string{file, filepath.Join(now, filepath.Base(file))} {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if err := yaml.Unmarshal(text, &is[i]); err != nil {
				return nil, err
			}
		}
		problems = append(problems, narrowed(schemaOf(&is[0]), schemaOf(&is[1]), is[1].Spec.Names.Kind, nil)...)
	}
	return problems, nil
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition) *props {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestNarrowed(t *testing.T) {
	const earlier = `
type: object
required: [phase]
properties:
  phase: {type: string, enum: [a, b], maxLength: 5}
  targets: {type: array, items: {type: object, properties: {id: {type: string}}}}
`
	for reason, row := range map[string]struct {
		now  string
		want []string
	}{
		"no change":             {earlier, nil},
		"a new field":           {"type: object\nrequired: [phase]\nproperties: {phase: {type: string, enum: [a, b, c], maxLength: 6}, more: {type: string}, targets: {type: array, items: {type: object, properties: {id: {type: string}}}}}", nil},
		"a field is required":   {"type: object\nrequired: [phase, targets]\nproperties: {phase: {type: string}, targets: {type: array, items: {type: object, properties: {id: {type: string}}}}}", []string{"Post: targets was not required"}},
		"a value was removed":   {"type: object\nproperties: {phase: {type: string, enum: [a]}, targets: {type: array}}", []string{"Post.phase: a value is no longer accepted"}},
		"values are listed now": {"type: object\nproperties: {phase: {type: string}, targets: {type: array, items: {type: object, properties: {id: {type: string, enum: [x]}}}}}", []string{"Post.targets[].id: a value is no longer accepted"}},
		"a shorter text":        {"type: object\nproperties: {phase: {type: string, maxLength: 4}, targets: {type: array}}", []string{"Post.phase: a limit is lower"}},
		"another type":          {"type: object\nproperties: {phase: {type: integer}, targets: {type: array}}", []string{"Post.phase: the type was string"}},
		"a field was removed":   {"type: object\nproperties: {phase: {type: string}}", []string{"Post: targets was removed"}},
		"a rule next to a new field": {
			"type: object\nx-kubernetes-validations: [{rule: '!has(oldSelf.more) || has(self.more)'}]\nproperties: {phase: {type: string}, more: {type: string}, targets: {type: array}}",
			[]string{"Post: a transition rule covers the new field more"},
		},
		"a rule around a new field": {
			"type: object\nx-kubernetes-validations: [{rule: 'oldSelf.targets.all(t, !has(t.more))'}]\nproperties: {phase: {type: string}, targets: {type: array, items: {type: object, properties: {id: {type: string}, more: {type: string}}}}}",
			[]string{"Post.targets[]: a transition rule covers the new field more"},
		},
		"a rule about a new field only": {"type: object\nx-kubernetes-validations: [{rule: '!has(self.more) || self.more'}]\nproperties: {phase: {type: string}, more: {type: boolean}, targets: {type: array}}", nil},
	} {
		var before, now props
		for text, into := range map[string]*props{earlier: &before, row.now: &now} {
			if err := yaml.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		if reason == "no change" {
			now = before
		}
		if diff := cmp.Diff(row.want, narrowed(&before, &now, "Post", nil)); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}
