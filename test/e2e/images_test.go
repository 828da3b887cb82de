// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// made lists an evaluation's images. The others are the manager's image with ffmpeg for thumbnails, and the client's
// image.
const (
	made   = "herald herald-sandbox herald-store"
	films  = "herald-ffmpeg"
	helper = "herald-e2e-client"
)

// command runs a program and returns its output.
func command(ctx context.Context, dir, name string, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, GinkgoWriter
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "%s %s", name, strings.Join(args, " "))
	return strings.TrimSpace(string(out))
}

// build builds a checkout's images and loads them into the cluster. version is their tag, by default the checkout's version. It returns the
// tag.
func build(ctx context.Context, checkout, version string) string {
	GinkgoHelper()
	load := loadCommand(ctx)
	images := made
	if version == "" {
		version, images = command(ctx, checkout, "make", "-s", "image-tag"), made+" "+films+" "+helper
	}
	out := filepath.Join(repository, "bin", "e2e", "images")
	Expect(os.RemoveAll(out)).To(Succeed())
	By("building the images of " + version)
	command(ctx, checkout, "make", "image", "IMAGES="+images, "IMAGE_ARCHS="+architecture(ctx), "IMAGE_DIR="+out,
		"IMAGE_CACHE="+filepath.Join(repository, "bin", "images", "cache"), "VERSION="+version)
	for name := range strings.FieldsSeq(images) {
		command(ctx, repository, "sh", "-c", load+` "$0"`, filepath.Join(out, name+".tar"))
	}
	return version
}

// architecture returns the cluster nodes' architecture.
func architecture(ctx context.Context) string {
	nodes, err := typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(nodes.Items).NotTo(BeEmpty())
	return nodes.Items[0].Status.NodeInfo.Architecture
}

// loadCommand returns the command that loads an image archive into the cluster. Local cluster tools provide such a
// command.
func loadCommand(context.Context) string {
	GinkgoHelper()
	if loader != "" {
		return loader
	}
	raw, err := kubeconfig.RawConfig()
	Expect(err).NotTo(HaveOccurred())
	for prefix, command := range map[string]string{
		"kind-":    "kind load image-archive --name NAME",
		"k3d-":     "k3d image import --cluster NAME",
		"minikube": "minikube image load",
	} {
		if name, ok := strings.CutPrefix(raw.CurrentContext, prefix); ok {
			return strings.ReplaceAll(command, "NAME", name)
		}
	}
	Fail("the test cannot load images into the cluster of the context " + raw.CurrentContext + ". Set LOAD to a command that accepts an OCI archive, " +
		"such as LOAD='k3s ctr images import', or push the images, and set REGISTRY and TAG")
	return ""
}
