// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// block matches a block of commands on a page.
var block = regexp.MustCompile("(?s)```sh\n(.*?)```")

// published is the chart's address on the page.
const published = "oci://ghcr.io/herald-social/charts/herald"

// trial is the namespace of the page's installation.
const trial = "herald"

// The page creates and deletes its own namespaces.
var _ = Describe("The quickstart", func() {
	It("works literally from an empty cluster to a published post, and back", func(ctx SpecContext) {
		page, err := os.ReadFile(filepath.Join(repository, "docs", "quickstart-kubernetes.md"))
		Expect(err).NotTo(HaveOccurred())
		var script strings.Builder
		script.WriteString("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n")
		for _, commands := range block.FindAllStringSubmatch(string(page), -1) {
			script.WriteString(commands[1])
			// The page waits for the first post last, before it shows the platforms.
			if strings.Contains(commands[1], "post/hello") {
				script.WriteString("echo >&2 published\n")
			}
		}
		text := script.String()
		Expect(strings.Count(text, published)).To(Equal(1), "the page installs the chart once")
		arguments := chart + " --set image.tag=" + tag
		if registry != "" {
			arguments += " --set image.repository=" + registry + "/herald"
		}
		text = strings.Replace(text, published, arguments, 1)
		DeferCleanup(func(ctx SpecContext) {
			// Remove leftovers of a failed run.
			deleteData(ctx)
			command(ctx, repository, filepath.Join(repository, "bin", "helm"), "uninstall", "herald", "--namespace", trial, "--ignore-not-found")
			deleteNamespace(ctx, trial)
			deleteDefinitions(ctx)
		})

		begun := time.Now()
		cmd := exec.CommandContext(ctx, "bash", "-c", text)
		cmd.Dir = repository
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(repository, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
		var out bytes.Buffer
		cmd.Stdout = io.MultiWriter(GinkgoWriter, &out)
		progress := &marks{of: "published\n", begun: begun}
		cmd.Stderr = progress
		Expect(cmd.Run()).To(Succeed(), "the commands of the page")
		Expect(out.String()).To(MatchRegexp("(?m)^"+regexp.QuoteMeta(site)+"/signin/link/[^/]+$"), "an address to sign in")
		logf("the quickstart: from the first command to a published post %s, to the end %s",
			progress.at.Round(100*time.Millisecond), time.Since(begun).Round(100*time.Millisecond))
		for _, name := range []string{trial, demo} {
			err := k8s.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "namespace %s still exists (%v)", name, err)
		}
	})
})

// marks records the time of each written line.
type marks struct {
	of    string
	begun time.Time
	at    time.Duration
}

// Write implements io.Writer.
func (m *marks) Write(data []byte) (int, error) {
	if m.at == 0 && strings.Contains(string(data), m.of) {
		m.at = time.Since(m.begun)
	}
	return GinkgoWriter.Write(data)
}
