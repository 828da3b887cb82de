// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("An installation of the previous version", Ordered, func() {
	var old string

	BeforeAll(func(ctx SpecContext) {
		if short {
			Skip("omitted from the short form: it builds the previous version's images")
		}
		if err := exec.CommandContext(ctx, "git", "-C", repository, "rev-parse", "--quiet", "--verify", previous+"^{commit}").Run(); err != nil {
			Skip("this checkout has no history with the tag " + previous + ": git fetch --unshallow --tags")
		}
		old = checkout(ctx, previous)
		createNamespaces(ctx)
		DeferCleanup(cleanUp)
		followLogs()
		if registry == "" {
			build(ctx, old, previous)
		}
		install(ctx, filepath.Join(old, "charts", "herald"), previous)
		begin(ctx)
		files(ctx)
		// Pause these Deployments: a new pod would lose the published posts.
		for _, name := range []string{"sandbox", "store"} {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: release + "-" + name}}
			Expect(k8s.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`)))).To(Succeed())
		}
	})

	DescribeTable("keeps publishing during", func(ctx SpecContext, change string, args func() []string) {
		const posts = 250
		sent := send(ctx, change, posts, posts*300*time.Millisecond, scheduledAhead)
		Eventually(sent.running).WithContext(ctx).Should(BeTrue())
		pass(ctx, scheduledAhead)
		begun := time.Now()
		helm(ctx, args()...)
		logf("%s took %s", change, time.Since(begun).Round(100*time.Millisecond))
		rolledOut(ctx, release+"-manager")
		v := sent.settled(ctx)
		logf("through %s: %s", change, v)
		expectWhole(v, posts)
		Expect(v.givenUp).To(BeZero(), "a roll-out does not interrupt calls")
	},
		Entry("the upgrade to this version", "an upgrade", func() []string {
			return []string{"upgrade", release, chart, "--reset-then-reuse-values", "--set", "image.tag=" + tag, "--wait", "--timeout", "5m"}
		}),
		Entry("a roll-out of this version", "a roll-out", func() []string {
			return append([]string{"upgrade", release, chart, "--set-string", "manager.podAnnotations.again=1,apiserver.podAnnotations.again=1"}, values(tag)...)
		}),
		Entry("a rollback, including the CRDs", "a rollback", func() []string {
			return []string{"rollback", release, "1", "--wait", "--timeout", "5m"}
		}),
	)
})
