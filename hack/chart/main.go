// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart writes the generated files of charts/herald, and renders the chart and the folders of config/ for tests
// and for the installer. It uses Helm and Kustomize as libraries, so tests do not need the helm and kustomize programs.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const usage = `Usage:
  chart generate CHECKOUT                          write what is generated in charts/herald
  chart template CHART RELEASE NAMESPACE [FILE...]  render the chart with files of values, the last one first among equals
  chart kustomize FOLDER                           render a folder with a kustomization.yaml
  chart installer CHECKOUT VERSION                 render config/default with the images of a version
  chart package CHECKOUT VERSION FOLDER             write the chart as an archive, with the images of a version such as v0.2.0`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "generate":
		return generate(args[1])
	case len(args) >= 4 && args[0] == "template":
		values, err := readValues(args[4:]...)
		if err != nil {
			return err
		}
		return to(out)(renderChart(args[1], release{name: args[2], namespace: args[3]}, values))
	case len(args) == 2 && args[0] == "kustomize":
		return to(out)(renderFolder(args[1]))
	case len(args) == 3 && args[0] == "installer":
		return to(out)(installer(args[1], args[2]))
	case len(args) == 4 && args[0] == "package":
		archive, err := packaged(args[1], args[2], args[3])
		return to(out)(archive+"\n", err)
	default:
		return errors.New("no such command\n" + usage)
	}
}

// to returns a function that writes a result to out, unless there was an error.
func to(out io.Writer) func(text string, err error) error {
	return func(text string, err error) error {
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, text)
		return err
	}
}
