// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/cmd/herald/internal/process"
)

// runConfig implements `herald config check FILE`, which reports all mistakes in a configuration file.
func runConfig(_ context.Context, args []string) error {
	want := process.UsageError{Err: errors.New("want `herald config check FILE`")}
	isCheck := len(args) > 0 && args[0] == "check"
	switch {
	case isCheck && len(args) == 2 && !strings.HasPrefix(args[1], "-"):
		kind, err := config.Check(args[1])
		if err != nil {
			return err
		}
		_, err = fmt.Printf("%s: a good %s\n", args[1], kind)
		return err
	case isCheck:
		args = args[1:]
	case len(args) != 1 || args[0] != "-h" && args[0] != "--help":
		return want
	}
	if err := process.Parse(process.NewFlagSet("config check FILE"), args); err != nil {
		return err
	}
	return want
}
