// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// levels is a transport that records the FlowSchema and the priority level of the last request, which it reads from the
// API server's response headers.
type levels struct {
	http.RoundTripper

	schema, level string
}

// RoundTrip implements http.RoundTripper.
func (l *levels) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		l.schema = answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
		l.level = answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
	}
	return answer, err
}

// served returns a client that acts as a user, and the levels of its requests.
func served(user string, groups ...string) (client.Client, *levels) {
	GinkgoHelper()
	seen := &levels{}
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		seen.RoundTripper = inner
		return seen
	})
	c, err := client.New(config, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return c, seen
}

var _ = DescribeTable("The Kubernetes API serves", func(ctx SpecContext, user string, attempt func(context.Context, client.Client) error, schema, level string) {
	c, seen := served(user, "system:authenticated")
	var flow flowcontrolv1.FlowSchema
	Expect(admin.Get(ctx, client.ObjectKey{Name: schema}, &flow)).To(Succeed())
	var at flowcontrolv1.PriorityLevelConfiguration
	Expect(admin.Get(ctx, client.ObjectKey{Name: level}, &at)).To(Succeed())
	// The API server applies a FlowSchema shortly after it has been stored. Whether the roles allow the request does
	// not matter here.
	Eventually(func() string {
		_ = attempt(ctx, c)
		return seen.schema
	}).Should(BeEquivalentTo(flow.UID))
	Expect(seen.level).To(BeEquivalentTo(at.UID))
},
	Entry("the manager's Lease at the level of Kubernetes' own, because a leader that waits loses it", "system:serviceaccount:herald-system:herald-manager",
		func(ctx context.Context, c client.Client) error {
			return c.Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "herald-manager"}}, client.DryRunAll)
		}, "herald-leases", "leader-election"),
	Entry("the manager's Leases in other namespaces at the default level", "system:serviceaccount:herald-system:herald-manager",
		func(ctx context.Context, c client.Client) error {
			return c.Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "herald-manager"}}, client.DryRunAll)
		}, "global-default", "global-default"),
	Entry("claims at their own level", "system:serviceaccount:herald-system:herald-manager",
		func(ctx context.Context, c client.Client) error {
			return c.Status().Patch(ctx, draft(), client.RawPatch(client.Merge.Type(), []byte(`{"status":{}}`)), client.DryRunAll)
		}, "herald-manager-writes", "herald-delivery"),
	Entry("the apiserver's writes at the default level", "system:serviceaccount:herald-system:herald-apiserver",
		func(ctx context.Context, c client.Client) error { return c.Create(ctx, born("p"), client.DryRunAll) }, "herald-apiserver-writes", "workload-low"),
	Entry("users' writes at a low level, because etcd keeps the history of every object", "ada",
		func(ctx context.Context, c client.Client) error { return c.Create(ctx, born("p"), client.DryRunAll) }, "herald-people-writes", "herald-people"),
	Entry("users' reads at the default level", "ada",
		func(ctx context.Context, c client.Client) error { return c.List(ctx, &v1alpha1.PostList{}) }, "global-default", "global-default"),
)
