// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"io"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// followLogs keeps what every pod of the release logs below bin/e2e/logs, until the
// specs end: pods that were killed take their logs with them.
func followLogs() {
	GinkgoHelper()
	dir := filepath.Join(repository, "bin", "e2e", "logs")
	Expect(os.RemoveAll(dir)).To(Succeed())
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	changes, err := typed.CoreV1().Pods(home).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	go func() {
		defer GinkgoRecover()
		seen := map[types.UID]bool{}
		for change := range changes.ResultChan() {
			pod, ok := change.Object.(*corev1.Pod)
			if !ok || pod.Status.Phase != corev1.PodRunning || seen[pod.UID] {
				continue
			}
			seen[pod.UID] = true
			go follow(ctx, pod.Name, filepath.Join(dir, pod.Name+".log"))
		}
	}()
}

// follow copies the log of a pod into a file until the pod ends.
func follow(ctx context.Context, pod, file string) {
	defer GinkgoRecover()
	log, err := typed.CoreV1().Pods(home).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		GinkgoWriter.Printf("the log of %s cannot be followed: %v\n", pod, err)
		return
	}
	defer func() { _ = log.Close() }()
	out, err := os.Create(file)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = out.Close() }()
	_, _ = io.Copy(out, log)
}
