// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package deletions_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The manager's log at level info", func() {
	It("has no startup noise, and no duplicate fields in a line", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.post(ctx, "hello")
		Eventually(manager.Log).Should(ContainSubstring("msg=published "))
		manager.Stop()
		for line := range strings.Lines(manager.Log()) {
			Expect(line).NotTo(Or(ContainSubstring("EventSource"), ContainSubstring("Starting workers"), ContainSubstring("logger=controller-runtime")))
			for _, field := range []string{" namespace=", " name=", " Post=", " Team="} {
				most := 1
				if field == " Post=" || field == " Team=" {
					most = 0
				}
				Expect(strings.Count(line, field)).To(BeNumerically("<=", most), line)
			}
		}
	})
})
