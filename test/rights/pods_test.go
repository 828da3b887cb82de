// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podOf returns a pod of the installation.
func podOf(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: name, Labels: map[string]string{"app.kubernetes.io/component": "some"}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{Name: "a", Image: "a", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
}

// podElsewhere returns a pod in another namespace with the name of one of Herald's.
func podElsewhere() *corev1.Pod {
	p := podOf("manager-1")
	p.Namespace = foreign
	return p
}

// storePods stores the pods of the suite. The manager's pod is running, and another program has set one of its
// readiness gates.
func storePods(ctx context.Context) error {
	for _, p := range []*corev1.Pod{podOf("manager-1"), podOf("apiserver-1"), podElsewhere()} {
		if err := admin.Create(ctx, p); err != nil {
			return err
		}
	}
	return admin.Status().Patch(ctx, podOf("manager-1"), client.RawPatch(types.StrategicMergePatchType, []byte(
		`{"status":{"phase":"Running","message":"it runs","podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}],"conditions":[{"type":"example.com/there","status":"True"}]}}`)))
}

// in acts as an account with the token of a pod.
func in(account, pod string, groups ...string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:herald-system:" + account, Groups: groups,
		Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {pod}},
	}
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// mark patches the status of a pod.
func mark(ctx context.Context, who client.Client, pod *corev1.Pod, patch string) error {
	return who.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.DryRunAll)
}

// said is the pod condition that reports whether the clock agrees.
const said = `{"status":{"conditions":[{"type":"social.herald.dev/ClockAgrees","status":"True","reason":"Agrees"}]}}`

var _ = DescribeTable("Either process, with the rights that it is installed with, writes into the status of", func(ctx SpecContext, from string, pod *corev1.Pod, patch string, words ...string) {
	for _, account := range []string{"herald-manager", "herald-apiserver"} {
		outcomeIs(mark(ctx, in(account, from), pod, patch), words...)
	}
},
	Entry("its own pod: what it has to say", "manager-1", podOf("manager-1"), said, nobody),
	Entry("its own pod: nothing, which is how it reads it", "manager-1", podOf("manager-1"), `{}`, nobody),
	Entry("another one: it would speak for it", "manager-1", podOf("apiserver-1"), said, policy, "herald-own-pod", "the one that it runs in"),
	Entry("another one: nothing, by which it would read it", "manager-1", podOf("apiserver-1"), `{}`, policy, "herald-own-pod", "the one that it runs in"),
	Entry("one, by a token that is of no pod", "", podOf("manager-1"), said, policy, "herald-own-pod", "the one that it runs in"),
	Entry("one of its name elsewhere", "manager-1", podElsewhere(), said, roles),
	Entry("its own pod: that it is ready", "manager-1", podOf("manager-1"),
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: that a gate of somebody else is open", "manager-1", podOf("manager-1"),
		`{"status":{"conditions":[{"type":"example.com/gate","status":"True"},{"type":"social.herald.dev/ClockAgrees","status":"True"}]}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: that the gate, which is there, is shut", "manager-1", podOf("manager-1"),
		`{"status":{"conditions":[{"type":"example.com/there","status":"False"}]}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: no gate any more", "manager-1", podOf("manager-1"),
		`{"status":{"conditions":[{"$patch":"delete","type":"example.com/there"}]}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: that it failed, so that it is replaced", "manager-1", podOf("manager-1"), `{"status":{"phase":"Failed"}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: the address of something else, which gets its calls", "manager-1", podOf("manager-1"),
		`{"status":{"podIP":"10.0.0.1","podIPs":[{"$patch":"replace"},{"ip":"10.0.0.1"}]}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: less than there is", "manager-1", podOf("manager-1"), `{"status":{"message":null}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod: more than there is", "manager-1", podOf("manager-1"), `{"status":{"reason":"Evicted"}}`, policy, "herald-own-pod", "nothing in the status"),
	Entry("its own pod, by way of the status: labels of another one", "manager-1", podOf("manager-1"),
		`{"metadata":{"labels":{"app.kubernetes.io/component":"other"}}}`, policy, "herald-own-pod", "nothing in a pod but its status"),
	Entry("its own pod, by way of the status: what other programs read", "manager-1", podOf("manager-1"),
		`{"metadata":{"annotations":{"example.com/inject":"true"}}}`, policy, "herald-own-pod", "nothing in a pod but its status"),
	Entry("its own pod, by way of the status: what keeps it from going", "manager-1", podOf("manager-1"),
		`{"metadata":{"finalizers":["example.com/kept"]}}`, policy, "herald-own-pod", "nothing in a pod but its status"),
)

var _ = DescribeTable("Whatever roles it has, either process does nothing else with pods of its namespace", func(ctx SpecContext, attempt func(ctx context.Context, who client.Client) error) {
	for _, account := range []string{"herald-manager", "herald-apiserver"} {
		outcomeIs(attempt(ctx, in(account, "manager-1", "powerful")), policy, "herald-own-pod", "nothing with pods but")
	}
},
	Entry("such as starting one with another account", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, podOf("mine"), client.DryRunAll)
	}),
	Entry("such as giving its own another image", func(ctx context.Context, who client.Client) error {
		return who.Patch(ctx, podOf("manager-1"), client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"a","image":"b"}]}}`)), client.DryRunAll)
	}),
	Entry("such as deleting its own", func(ctx context.Context, who client.Client) error {
		return who.Delete(ctx, podOf("manager-1"), client.DryRunAll)
	}),
	Entry("such as evicting one", func(ctx context.Context, who client.Client) error {
		return who.SubResource("eviction").Create(ctx, podOf("apiserver-1"), &policyv1.Eviction{}, &client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: []string{metav1.DryRunAll}}})
	}),
)
