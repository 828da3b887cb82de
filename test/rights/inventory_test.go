// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// right lists an account's permissions for one resource, or for named objects of it. Every row needs a reason: why the
// permission is needed and, if it is too broad, which policy restricts it.
type right struct {
	// of is "resource.group", or "resource.group name,name".
	of string
	// verbs are sorted.
	verbs string
	why   string
}

// rightsOfManager lists the manager's permissions by scope: the ones that apply everywhere, and additional ones in
// Herald's own namespace and in the teams' namespaces.
var rightsOfManager = map[string][]right{
	"everywhere": {
		{
			"apikeys.social.herald.dev", "get list watch",
			"to reconcile API keys",
		},
		{
			"apikeys.social.herald.dev/finalizers", "update",
			"to set keys as owners of Secrets, which some clusters require it for",
		},
		{
			"apikeys.social.herald.dev/status", "get patch update",
			"to write the status; the CustomResourceDefinition protects its hashes",
		},
		{
			"clusterroles.rbac.authorization.k8s.io herald-team-credentials", "bind get list watch",
			"to bind this role to the apiserver in team namespaces; policy herald-manager-role-bindings",
		},
		{
			"clusterroles.rbac.authorization.k8s.io herald-team-secrets", "bind get",
			"to bind this role to the manager in team namespaces; policy herald-manager-role-bindings",
		},
		{
			"connections.social.herald.dev", "get list patch watch",
			"to check accounts and record their Secrets; policy herald-manager-connections",
		},
		{"connections.social.herald.dev/status", "get patch update", "to write the status"},
		{
			"customresourcedefinitions.apiextensions.k8s.io " + definitions, "get",
			"to refuse to start with definitions of another version",
		},
		{
			"events.events.k8s.io", "create patch",
			"to record events; policy herald-events",
		},
		{
			"media.social.herald.dev", "delete get list patch update watch",
			"to fetch files, and delete unused ones; policy herald-manager-media",
		},
		{"media.social.herald.dev/status", "get patch update", "to write the status"},
		{
			"namespaces", "create get list watch",
			"to create a Team's namespace; policy herald-manager-namespaces",
		},
		{"notifiers.social.herald.dev", "get list watch", "to send notifications; only people and API keys write notifiers"},
		{"notifiers.social.herald.dev/status", "get patch update", "to write the status"},
		{
			"posts.social.herald.dev", "create delete get list patch update watch",
			"to deliver posts, create those of schedules, and delete them when their retention expires; policy herald-manager-posts",
		},
		{"posts.social.herald.dev/status", "get patch update", "to write the status"},
		{"postschedules.social.herald.dev", "get list watch", "to create their posts; only people write schedules"},
		{"postschedules.social.herald.dev/status", "get patch update", "to write the status"},
		{
			"resourcequotas", "create",
			"to limit what a team stores; policy herald-manager-budgets",
		},
		{
			"resourcequotas budget.social.herald.dev", "get list update watch",
			"to adjust the limit to the team's budget; policy herald-manager-budgets",
		},
		{
			"rolebindings.rbac.authorization.k8s.io", "create",
			"to bind the two roles; policy herald-manager-role-bindings",
		},
		{
			"rolebindings.rbac.authorization.k8s.io herald-apiserver-credentials,herald-manager-secrets", "delete get list update watch",
			"to correct the two bindings; policy herald-manager-role-bindings",
		},
		{
			"subjectaccessreviews.authorization.k8s.io", "create",
			"to authorize readers of the metrics",
		},
		{
			"teams.social.herald.dev", "get list patch watch",
			"to reconcile teams, and delete their records before them; only users may change a team's plan: policy herald-manager-teams",
		},
		{"teams.social.herald.dev/status", "get patch update", "to write the status"},
		{"tokenreviews.authentication.k8s.io", "create", "to authorize readers of the metrics"},
		{
			"usages.social.herald.dev", "create delete get list watch",
			"to count usage under plan limits, and delete old counts; policy herald-usages",
		},
		{"usages.social.herald.dev/status", "update", "as above"},
		{
			"validatingwebhookconfigurations.admissionregistration.k8s.io herald", "get",
			"to report in a metric whether the webhook is trusted",
		},
		{
			"validatingwebhookconfigurations.admissionregistration.k8s.io herald", "patch",
			"to write the webhook's CA; no policy can restrict this, so the chart omits it with cert-manager (docs/adr/0014)",
		},
	},
	"in herald-system": slices.Concat(namedLeases(), []right{
		{"events", "create patch", "to record the leader, as a legacy event; policy herald-events"},
		{"leases.coordination.k8s.io", "create list watch", "to elect a leader, and to see the replicas that share the shards: a list cannot be restricted to several names"},
		{
			"leases.coordination.k8s.io herald-clock", "get update",
			"to count minutes there and in the bucket, which detects a cluster that was restored to an earlier state",
		},
		{"leases.coordination.k8s.io herald-manager", "get patch update watch", "to elect a leader, and to count minutes"},
		{"secrets", "create", "to create the webhook's certificate; policy herald-manager-secrets"},
		{"secrets herald-webhook-certificate", "get update", "to maintain the webhook's certificate"},
	}),
	"in the namespaces of teams": {
		{
			"secrets", "create delete get patch update",
			"to read tokens, and renew them in working copies; policy herald-manager-secrets restricts the writes",
		},
	},
}

// namedLeases returns the permissions for the Leases of groups of posts, of replicas that share the shards, and of the
// shards.
func namedLeases() (rights []right) {
	for _, of := range []struct {
		kind   string
		number int
		why    string
	}{
		{"group", 32, "groups of posts are armed, opened and closed there (docs/adr/0026)"},
		{"member", 16, "replicas that share the shards renew them (docs/adr/0035)"},
		{"shard", 16, "the holder of a shard is stored there (docs/adr/0035)"},
	} {
		for n := range of.number {
			rights = append(rights, right{fmt.Sprintf("leases.coordination.k8s.io herald-%s-%02d", of.kind, n), "get update", of.why})
		}
	}
	return rights
}

// rightsOfAPIServer lists the apiserver's permissions, including those for users and agents.
var rightsOfAPIServer = map[string][]right{
	"everywhere": {
		{
			"apikeys.social.herald.dev", "create get list patch watch",
			"to recognize tokens, and create keys for users; policy herald-apiserver-keys",
		},
		{
			"apikeys.social.herald.dev/status", "patch",
			"to record when a key was last used; policy herald-apiserver-keys",
		},
		{
			"connections.social.herald.dev", "create delete get list patch watch",
			"to connect accounts for users; policy herald-apiserver-connections",
		},
		{
			"customresourcedefinitions.apiextensions.k8s.io " + definitions, "get",
			"to refuse to start with definitions of another version",
		},
		{
			"events.events.k8s.io", "create",
			"to record users' actions; policy herald-events",
		},
		{
			"media.social.herald.dev", "create get list patch watch",
			"to register uploads, and count them; policy herald-apiserver-media",
		},
		{
			"media.social.herald.dev/status", "update",
			"to record the verification of a file; policy herald-apiserver-media",
		},
		{
			"notifiers.social.herald.dev", "create delete get list patch",
			"to create, change and delete notifiers; policy herald-apiserver-notifiers",
		},
		{
			"oauthgrants.social.herald.dev", "create delete get list patch watch",
			"to store users' grants to agents; policy herald-apiserver-grants",
		},
		{
			"oauthgrants.social.herald.dev/status", "patch update",
			"to exchange codes and tokens; policy herald-apiserver-grants",
		},
		{
			"posts.social.herald.dev", "create get list patch watch",
			"to create, change and cancel posts; policy herald-apiserver-posts",
		},
		{
			"postschedules.social.herald.dev", "create delete get list patch",
			"to create, change and delete schedules; policy herald-apiserver-schedules",
		},
		{
			"rolebindings.rbac.authorization.k8s.io", "list",
			"to show a team's members to users who may list them with kubectl",
		},
		{
			"subjectaccessreviews.authorization.k8s.io", "create",
			"to authorize each of a user's actions, and readers of the metrics",
		},
		{"teams.social.herald.dev", "get list watch", "to read plans and subscriptions, which only users may change"},
		{"tokenreviews.authentication.k8s.io", "create", "to authorize readers of the metrics"},
		{
			"usages.social.herald.dev", "create get",
			"to count usage under plan limits; policy herald-usages",
		},
		{"usages.social.herald.dev/status", "update", "as above"},
	},
	"in herald-system": {
		{
			"secrets herald-web", "get list patch update watch",
			"to share session keys among replicas; policy herald-apiserver-secrets",
		},
	},
	"in the namespaces of teams": {
		{
			"secrets", "create",
			"to store accounts' tokens and notifiers' secrets, without reading them; policy herald-apiserver-secrets",
		},
	},
}

// definitions are the names of Herald's CustomResourceDefinitions.
const definitions = "apikeys.social.herald.dev,connections.social.herald.dev,media.social.herald.dev,notifiers.social.herald.dev,oauthgrants.social.herald.dev," +
	"posts.social.herald.dev,postschedules.social.herald.dev,teams.social.herald.dev,usages.social.herald.dev"

var _ = DescribeTable("The API server lists", func(ctx SpecContext, account string, expected map[string][]right) {
	for _, b := range []client.Object{binding(ofTeam), credentials(ofTeam)} {
		Expect(client.IgnoreAlreadyExists(manager.Create(ctx, b))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, b))).To(Succeed()) })
	}
	for where, namespaces := range map[string][2]string{
		"everywhere": {foreign, ""}, "in herald-system": {"herald-system", foreign}, "in the namespaces of teams": {ofTeam, foreign},
	} {
		Eventually(func() ([]string, error) {
			all, err := listed(ctx, account, namespaces[0])
			if err != nil {
				return nil, err
			}
			others, err := listed(ctx, "default", namespaces[0])
			if err != nil {
				return nil, err
			}
			if namespaces[1] != "" {
				everywhere, err := listed(ctx, account, namespaces[1])
				if err != nil {
					return nil, err
				}
				maps.Copy(others, everywhere)
			}
			maps.DeleteFunc(all, func(r string, _ bool) bool { return others[r] })
			return slices.Sorted(maps.Keys(all)), nil
		}).Should(Equal(linesOf(expected[where])), "the rights of %s %s differ from this file", account, where)
	}
},
	Entry("the manager's permissions", "herald-manager", rightsOfManager),
	Entry("the apiserver's permissions", "herald-apiserver", rightsOfAPIServer),
)

// linesOf returns permissions in the same format as listed, one line for each verb and object.
func linesOf(rights []right) []string {
	lines := map[string]bool{}
	for _, r := range rights {
		of, names, named := strings.Cut(r.of, " ")
		for verb := range strings.FieldsSeq(r.verbs) {
			if !named {
				lines[verb+" "+of] = true
			}
			for name := range strings.SplitSeq(names, ",") {
				if named {
					lines[verb+" "+of+" "+name] = true
				}
			}
		}
		Expect(r.why).NotTo(BeEmpty(), r.of)
	}
	return slices.Sorted(maps.Keys(lines))
}

// listed requests an account's permissions in a namespace from the API server and returns them as "verb resource.group
// name". The account is in herald-system.
func listed(ctx context.Context, account, namespace string) (map[string]bool, error) {
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:herald-system:" + account}
	who, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		return nil, err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := who.Create(ctx, review); err != nil {
		return nil, err
	}
	lines := map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				base, subresource, isSubresource := strings.Cut(resource, "/")
				of := strings.TrimSuffix(base+"."+group, ".")
				if isSubresource {
					of += "/" + subresource
				}
				for _, verb := range rule.Verbs {
					names := rule.ResourceNames
					if len(names) == 0 {
						names = []string{""}
					}
					for _, name := range names {
						lines[strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, of, name))] = true
					}
				}
			}
		}
	}
	for _, rule := range review.Status.NonResourceRules {
		for _, path := range rule.NonResourceURLs {
			lines[strings.Join(rule.Verbs, ",")+" "+path] = true
		}
	}
	if review.Status.Incomplete {
		return nil, fmt.Errorf("the list is not complete: %s", review.Status.EvaluationError)
	}
	return lines, nil
}
