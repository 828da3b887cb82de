// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// restartEvery is the rollout interval.
	restartEvery = 10 * time.Second
	// cutFor is the network partition's duration.
	cutFor = 25 * time.Second
	// scheduledAhead is the time between a post's creation and its due time, during which its request can be retried.
	scheduledAhead = 20 * time.Second
	// between is the pause between two failures.
	between = 3 * time.Second
)

// pass waits on the real clock while the cluster reacts.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// trouble kills pods of each kind and partitions networks, one after another, until the client has created its posts
// and each failure has happened.
func trouble(ctx context.Context, sent *traffic) {
	GinkgoHelper()
	nodes, err := typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	reached := onNode != "" && len(nodes.Items) == 1
	kinds := []struct {
		name string
		do   func(context.Context)
		node bool
	}{
		{"the leader is killed", func(ctx context.Context) { kill(ctx, leader(ctx), "herald") }, true},
		{"the leader's pod is deleted without grace", func(ctx context.Context) { remove(ctx, leader(ctx)) }, false},
		{"an apiserver is killed", func(ctx context.Context) { kill(ctx, &pods(ctx, "apiserver")[0], "herald") }, true},
		{"an apiserver's pod is deleted without grace", func(ctx context.Context) { remove(ctx, &pods(ctx, "apiserver")[0]) }, false},
		{"the store is killed, and starts with its files", func(ctx context.Context) { kill(ctx, one(ctx, "store"), "herald-store") }, true},
		{"the platforms are killed, and restarted with their published posts", func(ctx context.Context) { kill(ctx, one(ctx, "sandbox"), "herald-sandbox") }, true},
		{"the leader is cut off, and another one follows it", func(ctx context.Context) {
			cut := leader(ctx)
			partition(ctx, cut, func() {
				Eventually(func() string { return leader(ctx).Name }).WithContext(ctx).ShouldNot(Equal(cut.Name))
			})
		}, true},
		{"both managers' pods are deleted without grace", func(ctx context.Context) {
			for _, pod := range pods(ctx, "manager") {
				remove(ctx, &pod)
			}
		}, false},
		{"an apiserver is cut off", func(ctx context.Context) { partition(ctx, &pods(ctx, "apiserver")[0], func() { pass(ctx, cutFor) }) }, true},
	}
	for round := 0; round == 0 || sent.running(ctx); round++ {
		for _, kind := range kinds {
			switch {
			case kind.node && !reached:
				if round == 0 {
					logf("left out: %s. It takes a cluster of one node, and NODE, a command that runs another one there, such as "+
						"NODE='docker exec kind-control-plane'", kind.name)
				}
				continue
			case round > 0 && !sent.running(ctx):
				continue
			}
			By(kind.name)
			kind.do(ctx)
			pass(ctx, between)
		}
	}
	for _, name := range []string{"manager", "apiserver", "sandbox", "store"} {
		rolledOut(ctx, release+"-"+name)
	}
}

// onTheNode runs a command on the node and returns its output.
func onTheNode(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return command(ctx, repository, "sh", append([]string{"-c", onNode + ` "$@"`, "sh"}, args...)...)
}

// partition disconnects a pod from the network while meanwhile runs.
func partition(ctx context.Context, pod *corev1.Pod, meanwhile func()) {
	GinkgoHelper()
	mend := func() {
		for _, chain := range []string{"INPUT", "FORWARD"} {
			onTheNode(context.WithoutCancel(ctx), "sh", "-c", `iptables -D "$0" -s "$1" -j DROP 2>/dev/null || true`, chain, pod.Status.PodIP)
		}
	}
	// The partition must end even if the spec is interrupted.
	DeferCleanup(mend)
	for _, chain := range []string{"INPUT", "FORWARD"} {
		onTheNode(ctx, "iptables", "-I", chain, "-s", pod.Status.PodIP, "-j", "DROP")
	}
	meanwhile()
	mend()
}

// restart keeps rolling out both Deployments, as `kubectl rollout restart` does, while the client creates posts, and
// returns the number of rollouts.
func restart(ctx context.Context, sent *traffic) (n int) {
	GinkgoHelper()
	for ; sent.running(ctx); n++ {
		stamp, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339)},
		}}}})
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"manager", "apiserver"} {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: release + "-" + name}}
			Expect(k8s.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, stamp))).To(Succeed())
		}
		pass(ctx, restartEvery)
	}
	for _, name := range []string{"manager", "apiserver"} {
		rolledOut(ctx, release+"-"+name)
	}
	return n
}
