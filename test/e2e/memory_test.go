// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory prints the memory use of each release pod, as counted by the kubelet for limits.
func memory(ctx context.Context, when string) {
	GinkgoHelper()
	for _, component := range []string{"manager", "apiserver"} {
		for _, pod := range pods(ctx, component) {
			var used uint64
			// The kubelet measures about every ten seconds.
			Eventually(func(g Gomega) {
				var err error
				used, err = workingSet(ctx, &pod)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(used).NotTo(BeZero())
			}).WithContext(ctx).Should(Succeed())
			logf("memory of %s %s: %d MiB", pod.Name, when, used>>20)
		}
	}
}

// workingSet returns the memory use of a pod's containers in bytes, as counted by its node; 0 before the first measurement.
func workingSet(ctx context.Context, pod *corev1.Pod) (uint64, error) {
	raw, err := typed.CoreV1().RESTClient().Get().Resource("nodes").Name(pod.Spec.NodeName).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	type usage struct {
		WorkingSetBytes uint64 `json:"workingSetBytes"`
	}
	var summary struct {
		Pods []struct {
			PodRef struct {
				UID types.UID `json:"uid"`
			} `json:"podRef"`
			Containers []struct {
				Memory usage `json:"memory"`
			} `json:"containers"`
		} `json:"pods"`
	}
	if err := json.Unmarshal(raw, &summary); err != nil {
		return 0, err
	}
	for _, found := range summary.Pods {
		if found.PodRef.UID != pod.UID {
			continue
		}
		var sum uint64
		for _, container := range found.Containers {
			sum += container.Memory.WorkingSetBytes
		}
		return sum, nil
	}
	return 0, errors.New("the node does not know the pod")
}
