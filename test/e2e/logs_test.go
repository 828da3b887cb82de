// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logs is the directory for all pods' logs.
var logs = filepath.Join(repository, "bin", "e2e", "logs")

// followLogs stores the logs of every release container until the specs end, because a deleted pod's log is lost.
func followLogs() {
	GinkgoHelper()
	Expect(os.MkdirAll(logs, 0o755)).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go func() {
		defer GinkgoRecover()
		seen := map[string]bool{}
		for ctx.Err() == nil {
			list, err := typed.CoreV1().Pods(home).List(ctx, metav1.ListOptions{})
			if err != nil {
				list = &corev1.PodList{} // the API may be unavailable, and the list is retried
			}
			for i := range list.Items {
				for _, container := range list.Items[i].Status.ContainerStatuses {
					name := fmt.Sprintf("%s-%d.log", list.Items[i].Name, container.RestartCount)
					if container.State.Running != nil && !seen[name] {
						seen[name] = true
						go follow(ctx, list.Items[i].Name, filepath.Join(logs, name))
					}
				}
			}
			pass(ctx, time.Second)
		}
	}()
}

// follow copies a pod container's log to a file until the log ends.
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
