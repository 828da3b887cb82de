// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/test/sandboxtest"
)

// pods returns the pods of a release component that are not being deleted.
func pods(ctx context.Context, component string) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(k8s.List(ctx, &list, client.InNamespace(home), client.MatchingLabels{
		"app.kubernetes.io/instance": release, "app.kubernetes.io/component": component,
	})).To(Succeed())
	var out []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			out = append(out, list.Items[i])
		}
	}
	return out
}

// names returns the names of pods, in order.
func names(pods []corev1.Pod) (out []string) {
	for i := range pods {
		out = append(out, pods[i].Name)
	}
	slices.Sort(out)
	return out
}

// leader returns the manager pod that holds the lease.
func leader(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	var found *corev1.Pod
	Eventually(func(g Gomega) {
		var lease coordinationv1.Lease
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: home, Name: release + "-manager"}, &lease)).To(Succeed())
		g.Expect(lease.Spec.HolderIdentity).NotTo(BeNil())
		for _, pod := range pods(ctx, "manager") {
			if strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_") {
				found = &pod
				return
			}
		}
		g.Expect(*lease.Spec.HolderIdentity).To(BeEmpty(), "the holder is not a pod")
		g.Expect(found).NotTo(BeNil(), "the lease has no holder")
	}).WithContext(ctx).Should(Succeed())
	return found
}

// remove deletes a pod without a grace period: its processes receive SIGTERM and are killed a moment later.
func remove(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
}

// kill kills a pod's process on its node, like kill -9. The pod restarts it and keeps its volumes.
func kill(ctx context.Context, pod *corev1.Pod, program string) {
	GinkgoHelper()
	uid := string(pod.UID)
	// With systemd, control group names contain underscores.
	killed := onTheNode(ctx, "sh", "-c", `for p in /proc/[0-9]*; do
		if [ "$(cat "$p/comm" 2>/dev/null)" = "$0" ] && grep -q -e "$1" -e "$2" "$p/cgroup" 2>/dev/null; then kill -9 "${p#/proc/}" && echo killed; fi
	done`, program, uid, strings.ReplaceAll(uid, "-", "_"))
	Expect(killed).To(Equal("killed"), "one process of pod %s", pod.Name)
}

// one returns the only pod of a release component.
func one(ctx context.Context, component string) *corev1.Pod {
	GinkgoHelper()
	running := pods(ctx, component)
	Expect(running).To(HaveLen(1))
	return &running[0]
}

// forward forwards a pod's port until the spec ends, and returns its local address.
func forward(ctx context.Context, pod *corev1.Pod, port int) string {
	GinkgoHelper()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	Expect(err).NotTo(HaveOccurred())
	url := typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	DeferCleanup(func() { close(stop) })
	select {
	case <-ready:
	case err := <-ended:
		Expect(err).NotTo(HaveOccurred())
	case <-ctx.Done():
		Fail("the port of " + pod.Name + " was not reached")
	}
	ports, err := forwarder.GetPorts()
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("http://127.0.0.1:%d", ports[0].Local)
}

// platforms returns a sandbox client.
func platforms(ctx context.Context) sandboxtest.Client {
	GinkgoHelper()
	return sandboxtest.Client{URL: forward(ctx, one(ctx, "sandbox"), 9100)}
}
