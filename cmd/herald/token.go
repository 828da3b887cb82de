// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/herald-social/herald/cmd/herald/internal/process"
	"github.com/herald-social/herald/internal/apitoken"
)

// runToken prints a new token for an API key, and the hash for the key's spec.
func runToken(_ context.Context, args []string) error {
	return printToken(os.Stdout, args)
}

func printToken(out io.Writer, args []string) error {
	flags := process.NewFlagSet("token")
	namespace := flags.String("namespace", "", "namespace of the APIKey")
	name := flags.String("name", "", "name of the APIKey")
	if err := process.Parse(flags, args); err != nil {
		return err
	}
	if *namespace == "" || *name == "" {
		return process.UsageError{Err: errors.New("--namespace and --name: both are required; a token is bound to its APIKey")}
	}
	token := apitoken.New(*namespace, *name)
	_, err := fmt.Fprintf(out, "token: %s\nsha256: %s\n", token, apitoken.Hash(*namespace, *name, token))
	return err
}
