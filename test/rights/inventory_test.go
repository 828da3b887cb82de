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

// right lists an account's rights to one resource, or to named objects of it. Every row needs a reason: why the right
// is needed and, if it is too broad, which policy restricts it.
type right struct {
	// of is "resource.group", or "resource.group name,name".
	of string
	// verbs are sorted.
	verbs string
	why   string
}

// rightsOfManager are the manager's rights by scope: those that apply everywhere, and additional ones in Herald's own
// namespace and in the teams' namespaces.
var rightsOfManager = map[string][]right{
	"everywhere": {
		{
			"apikeys.social.herald.dev", "get list watch",
			"keys are reconciled",
		},
		{
			"apikeys.social.herald.dev/finalizers", "update",
			"a Secret names its key as an owner, which some clusters ask this right for",
		},
		{
			"apikeys.social.herald.dev/status", "get patch update",
			"the status is the manager's; the definition of the resource keeps the hashes in it",
		},
		{
			"clusterroles.rbac.authorization.k8s.io herald-team-credentials", "bind get list watch",
			"the apiserver gets this role in each team's namespace; policy herald-manager-role-bindings",
		},
		{
			"clusterroles.rbac.authorization.k8s.io herald-team-secrets", "bind get",
			"the manager gets this role in each team's namespace; policy herald-manager-role-bindings",
		},
		{
			"connections.social.herald.dev", "get list patch watch",
			"accounts are examined and noted; policy herald-manager-connections",
		},
		{"connections.social.herald.dev/status", "get patch update", "the status is the manager's"},
		{
			"customresourcedefinitions.apiextensions.k8s.io " + definitions, "get",
			"the process starts with definitions of its own age only",
		},
		{
			"events.events.k8s.io", "create patch",
			"people read what happened; policy herald-events",
		},
		{
			"media.social.herald.dev", "delete get list patch update watch",
			"files are fetched, and removed when no post uses them; policy herald-manager-media",
		},
		{"media.social.herald.dev/status", "get patch update", "the status is the manager's"},
		{
			"namespaces", "create get list watch",
			"the namespace of a Team is made; policy herald-manager-namespaces",
		},
		{
			"posts.social.herald.dev", "delete get list patch update watch",
			"posts are delivered, and leave the cluster when they are finished and their time is over; policy herald-manager-posts",
		},
		{"posts.social.herald.dev/status", "get patch update", "the status is the manager's"},
		{
			"resourcequotas", "create",
			"what a team stores is bounded; policy herald-manager-budgets",
		},
		{
			"resourcequotas budget.social.herald.dev", "get list update watch",
			"the bound follows the team's budget; policy herald-manager-budgets",
		},
		{
			"rolebindings.rbac.authorization.k8s.io", "create",
			"the two roles are bound; policy herald-manager-role-bindings",
		},
		{
			"rolebindings.rbac.authorization.k8s.io herald-apiserver-credentials,herald-manager-secrets", "delete get list update watch",
			"the two bindings are corrected; policy herald-manager-role-bindings",
		},
		{
			"subjectaccessreviews.authorization.k8s.io", "create",
			"the metrics are shown to those who may read them",
		},
		{
			"teams.social.herald.dev", "get list patch watch",
			"teams are reconciled, and go after their records; what a team may do is written by people alone: policy herald-manager-teams",
		},
		{"teams.social.herald.dev/status", "get patch update", "the status is the manager's"},
		{"tokenreviews.authentication.k8s.io", "create", "the metrics are shown to those who may read them"},
		{
			"usages.social.herald.dev", "create delete get list watch",
			"what plans limit is counted, and swept; policy herald-usages",
		},
		{"usages.social.herald.dev/status", "update", "as above"},
		{
			"validatingwebhookconfigurations.admissionregistration.k8s.io herald", "get",
			"a metric tells whether the webhook is trusted",
		},
		{
			"validatingwebhookconfigurations.admissionregistration.k8s.io herald", "patch",
			"the webhook's authority is put there; no policy can hold this, so that the chart leaves it out where cert-manager does it (docs/adr/0014)",
		},
	},
	"in herald-system": slices.Concat(groupLeases(), []right{
		{"events", "create patch", "who leads is told, in the old form of events; policy herald-events"},
		{"leases.coordination.k8s.io", "create", "one manager leads"},
		{
			"leases.coordination.k8s.io herald-clock", "get update",
			"minutes are counted there, and in the bucket, so that a cluster that was put back to an earlier state is noticed",
		},
		{"leases.coordination.k8s.io herald-manager", "get patch update watch", "as above"},
		{"secrets", "create", "the webhook's certificate is made; policy herald-manager-secrets"},
		{"secrets herald-webhook-certificate", "get update", "as above"},
	}),
	"in the namespaces of teams": {
		{
			"secrets", "create delete get patch update",
			"tokens are read, and kept in copies that are renewed; of what is written policy herald-manager-secrets says more",
		},
	},
}

// groupLeases are the rights to the Leases that groups of posts are stored in.
func groupLeases() (rights []right) {
	for n := range 32 {
		rights = append(rights, right{fmt.Sprintf("leases.coordination.k8s.io herald-group-%02d", n), "get update", "groups of posts are armed, opened and closed there (docs/adr/0026)"})
	}
	return rights
}

// rightsOfAPIServer are the apiserver's rights, including those for users and agents.
var rightsOfAPIServer = map[string][]right{
	"everywhere": {
		{
			"apikeys.social.herald.dev", "create get list patch watch",
			"tokens are known, and keys made for people; policy herald-apiserver-keys",
		},
		{
			"apikeys.social.herald.dev/status", "patch",
			"when a key was last used; policy herald-apiserver-keys",
		},
		{
			"connections.social.herald.dev", "create delete get list patch watch",
			"people connect accounts; policy herald-apiserver-connections",
		},
		{
			"customresourcedefinitions.apiextensions.k8s.io " + definitions, "get",
			"the process starts with definitions of its own age only",
		},
		{
			"events.events.k8s.io", "create",
			"what a person did is told; policy herald-events",
		},
		{
			"media.social.herald.dev", "create get list patch watch",
			"files are uploaded, and counted; policy herald-apiserver-media",
		},
		{
			"media.social.herald.dev/status", "update",
			"a file is verified on the spot; policy herald-apiserver-media",
		},
		{
			"oauthgrants.social.herald.dev", "create delete get list patch watch",
			"people allow agents; policy herald-apiserver-grants",
		},
		{
			"oauthgrants.social.herald.dev/status", "patch update",
			"codes and tokens are exchanged; policy herald-apiserver-grants",
		},
		{
			"posts.social.herald.dev", "create get list patch watch",
			"posts are made, changed and cancelled; policy herald-apiserver-posts",
		},
		{
			"rolebindings.rbac.authorization.k8s.io", "list",
			"the members of a team are shown to those who may list them with kubectl",
		},
		{
			"subjectaccessreviews.authorization.k8s.io", "create",
			"what people may do is asked for each step; the metrics are shown to those who may read them",
		},
		{"teams.social.herald.dev", "get list watch", "plans and subscriptions; what a team may do is written by people alone"},
		{"tokenreviews.authentication.k8s.io", "create", "the metrics are shown to those who may read them"},
		{
			"usages.social.herald.dev", "create get",
			"what plans limit is counted; policy herald-usages",
		},
		{"usages.social.herald.dev/status", "update", "as above"},
	},
	"in herald-system": {
		{
			"secrets herald-web", "get list patch update watch",
			"the replicas share the keys of sessions; policy herald-apiserver-secrets",
		},
	},
	"in the namespaces of teams": {
		{
			"secrets", "create",
			"the tokens of accounts are stored, and not read; policy herald-apiserver-secrets",
		},
	},
}

// definitions are the names of Herald's CustomResourceDefinitions.
const definitions = "apikeys.social.herald.dev,connections.social.herald.dev,media.social.herald.dev,oauthgrants.social.herald.dev," +
	"posts.social.herald.dev,teams.social.herald.dev,usages.social.herald.dev"

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
		}).Should(Equal(linesOf(expected[where])), "%s may do %s what no row of this file gives a reason for, or less", account, where)
	}
},
	Entry("what the manager may do", "herald-manager", rightsOfManager),
	Entry("what the apiserver may do", "herald-apiserver", rightsOfAPIServer),
)

// linesOf returns rights in the same format as listed, one line for each verb and object.
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

// listed asks the API server for an account's rights in a namespace and returns them as "verb resource.group name". The
// account is in herald-system.
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
