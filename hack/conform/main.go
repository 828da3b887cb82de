// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conform checks manifests: kubeconform reports fields that the oldest or the newest supported Kubernetes does
// not have, and kube-score reports deviations from its recommendations. Each run generates the schemas from the OpenAPI
// documents and the CustomResourceDefinitions in pinned Go modules, so it needs only the module proxy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

const usage = `Usage: conform --checkout FOLDER FILE...

Each FILE is what was rendered from one set of values`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conform:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("conform", flag.ContinueOnError)
	checkout := flags.String("checkout", "", "the folder of Herald's repository")
	flags.Usage = func() { fmt.Fprintln(flags.Output(), usage) }
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *checkout == "" || flags.NArg() == 0 {
		return errors.New("a checkout and files are required\n" + usage)
	}
	renderings, err := readRenderings(flags.Args())
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "conform-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	versions, err := writeSchemas(ctx, *checkout, folder)
	if err != nil {
		return err
	}
	explained, err := readExplanations(filepath.Join(*checkout, "hack", "conform", "explained.yaml"))
	if err != nil {
		return err
	}
	var problems []error
	for _, version := range versions {
		objects, err := conforms(folder, version, renderings)
		problems = append(problems, err)
		fmt.Printf("kubeconform: Kubernetes %s knows %d objects of %d files\n", version, objects, len(renderings))
	}
	findings, err := score(versions[0], renderings)
	fmt.Printf("kube-score: %d findings, for which there are %d explanations\n", len(findings), len(explained))
	return errors.Join(append(problems, err, checkFindings(findings, explained))...)
}

// rendering is the output of the chart for one set of values, or of a kustomize folder.
type rendering struct {
	// name is the file name up to its first dot.
	name string
	text []byte
}

func readRenderings(files []string) ([]rendering, error) {
	var out []rendering
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		out = append(out, rendering{name: name[:len(name)-len(filepath.Ext(name))], text: text})
	}
	return out, nil
}
