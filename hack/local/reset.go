// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

// reset forgets everything that was run before.
func (a *app) reset(ctx context.Context) error {
	lock, err := a.takeLock("the local state is being forgotten")
	if err != nil {
		return err
	}
	err = a.endLeftovers(ctx)
	if err == nil {
		err = a.workspace.Forget()
	}
	if err == nil {
		a.steps.Sayf("The local state is forgotten; `make run` begins anew.")
	}
	return errors.Join(err, lock.Release())
}
