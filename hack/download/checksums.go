// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// printChecksums downloads all releases of the pinned versions and prints their lines for checksums.txt. It fails if a
// file's checksum differs from the one its publisher lists.
func (d *downloader) printChecksums(ctx context.Context, versions map[string]string, w io.Writer) error {
	releases, err := allReleases(versions)
	if err != nil {
		return err
	}
	for _, r := range releases {
		got, err := d.save(ctx, d.address(r, r.path), io.Discard)
		if err != nil {
			return fmt.Errorf("cannot download %s: %w", d.address(r, r.path), err)
		}
		var list bytes.Buffer
		if _, err := d.save(ctx, d.address(r, r.sums), &list); err != nil {
			return fmt.Errorf("cannot download %s: %w", d.address(r, r.sums), err)
		}
		want, err := published(list.String(), r.path)
		if err != nil {
			return fmt.Errorf("%s: %w", d.address(r, r.sums), err)
		}
		if got != want {
			return fmt.Errorf("%s has the SHA-256 %s, but its publisher lists %s", d.address(r, r.path), got, want)
		}
		if _, err := fmt.Fprintf(w, "%s  %s\n", got, r.path); err != nil {
			return err
		}
	}
	return nil
}
