// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/herald-social/herald/cmd/herald/internal/config"
)

// runConfig is `herald config check FILE`: it says everything that is wrong in a configuration file.
func runConfig(_ context.Context, args []string) error {
	flags := newFlagSet("config check FILE")
	if len(args) > 0 && args[0] == "check" {
		args = args[1:]
	} else if len(args) != 1 || (args[0] != "-h" && args[0] != "--help") {
		return usageError{errors.New("want `herald config check FILE`")}
	}
	var files []string
	if len(args) == 1 && args[0][:min(1, len(args[0]))] != "-" {
		files, args = args, nil
	}
	if err := parse(flags, args); err != nil {
		return err
	}
	if len(files) != 1 {
		return usageError{errors.New("want `herald config check FILE`")}
	}
	kind, err := config.Check(files[0])
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s: a good %s\n", files[0], kind)
	return err
}
