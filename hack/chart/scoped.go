// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// clusterScoped lists the cluster-scoped resources that Herald's service accounts can access.
var clusterScoped = []string{
	"clusterroles", "customresourcedefinitions", "namespaces", "subjectaccessreviews", "teams", "teams/status", "tokenreviews",
	"validatingwebhookconfigurations",
}

// inNamespaces lists the namespaced resources that Herald's service accounts can access.
var inNamespaces = []string{
	"apikeys", "apikeys/finalizers", "apikeys/status", "connections", "connections/status", "events", "media", "media/status", "notifiers", "notifiers/status", "oauthgrants",
	"oauthgrants/status", "posts", "posts/status", "postschedules", "postschedules/status", "resourcequotas", "rolebindings", "usages", "usages/status",
}

// scoped converts a ClusterRole to a template that supports installations for selected namespaces: if the value
// namespaces is set, the rules for namespaced resources move to a Role in each namespace, bound to the process's
// account. The condition, if any, determines whether the objects are rendered.
func scoped(text, role, process, condition string) (string, error) {
	head, body, found := strings.Cut(text, "\nrules:\n")
	if !found {
		return "", fmt.Errorf("the ClusterRole %s has no rules", role)
	}
	var rules, ofCluster, inNamespace []rbacv1.PolicyRule
	if err := yaml.Unmarshal([]byte(body), &rules); err != nil {
		return "", fmt.Errorf("the rules of the ClusterRole %s: %w", role, err)
	}
	for _, rule := range rules {
		cluster, namespaced, err := split(rule)
		if err != nil {
			return "", fmt.Errorf("the rules of the ClusterRole %s: %w", role, err)
		}
		ofCluster, inNamespace = append(ofCluster, cluster...), append(inNamespace, namespaced...)
	}
	cluster, err := yaml.Marshal(ofCluster)
	if err != nil {
		return "", err
	}
	namespaced, err := yaml.Marshal(inNamespace)
	if err != nil {
		return "", err
	}
	// An installation for selected namespaces does not create namespaces: they must exist before its Roles.
	everywhere := strings.Replace(installed(string(cluster)), "  - namespaces\n  verbs:\n  - create\n",
		"  - namespaces\n  verbs:\n  {{- if not .Values.namespaces }}\n  - create\n  {{- end }}\n", 1)
	helper := "herald.rules." + role
	template := installed(head+"\nrules:\n") + everywhere +
		fmt.Sprintf("{{- if not .Values.namespaces }}\n{{ include %q . }}\n{{- end }}\n", helper) +
		fmt.Sprintf("{{- include \"herald.roles\" (dict \"root\" . \"role\" %q \"process\" %q \"rules\" (include %q .)) }}\n", role, process, helper)
	if condition != "" {
		template = when(condition, template)
	}
	return fmt.Sprintf("{{- define %q -}}\n%s{{- end }}\n", helper, installed(string(namespaced))) + template, nil
}

// split divides a rule into a cluster part and a namespaced part. Kubernetes checks the permission to bind a
// ClusterRole in the binding's namespace.
func split(rule rbacv1.PolicyRule) (cluster, namespaced []rbacv1.PolicyRule, err error) {
	add := func(to *[]rbacv1.PolicyRule, resources, verbs []string) {
		if len(resources) > 0 && len(verbs) > 0 {
			part := *rule.DeepCopy()
			part.Resources, part.Verbs = resources, verbs
			*to = append(*to, part)
		}
	}
	var whole, in, bound []string
	for _, resource := range rule.Resources {
		switch {
		case resource == "clusterroles":
			bound = append(bound, resource)
		case slices.Contains(clusterScoped, resource):
			whole = append(whole, resource)
		case slices.Contains(inNamespaces, resource):
			in = append(in, resource)
		default:
			return nil, nil, fmt.Errorf("%s: name it in clusterScoped or inNamespaces", resource)
		}
	}
	add(&cluster, whole, rule.Verbs)
	add(&namespaced, in, rule.Verbs)
	add(&cluster, bound, slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "bind" }))
	if slices.Contains(rule.Verbs, "bind") {
		add(&namespaced, bound, []string{"bind"})
	}
	return cluster, namespaced, nil
}

// userPolicies are the policies for everyone who writes Herald's kinds. In an installation for selected namespaces they
// apply only to these: any other installation has its own policies, which exempt its own accounts. The policies for
// Herald's own accounts apply everywhere.
var userPolicies = []string{"marks", "post-marks", "metadata", "post-size"}

// selective limits the policies for everyone to the namespaces that the installation serves.
func selective(template string) (string, error) {
	const everywhere, served = "    namespaceSelector: {}\n", "    namespaceSelector: {{ include \"herald.servedNamespaces\" . }}\n"
	for _, policy := range userPolicies {
		name := "  name: {{ include \"herald.fullname\" . }}-" + policy + "\n"
		at := strings.Index(template, name)
		if at < 0 {
			return "", fmt.Errorf("there is no policy %s", policy)
		}
		selector := strings.Index(template[at:], everywhere)
		if selector < 0 {
			return "", fmt.Errorf("the policy %s has no namespaceSelector", policy)
		}
		at += selector
		template = template[:at] + served + template[at+len(everywhere):]
	}
	return template, nil
}

// selectiveWebhook limits the webhook to the namespaces that the installation serves.
func selectiveWebhook(template string) string {
	const before = "  matchPolicy: Equivalent\n"
	return strings.Replace(template, before,
		before+"  {{- if .Values.namespaces }}\n  namespaceSelector: {{ include \"herald.servedNamespaces\" . }}\n  {{- end }}\n", 1)
}
