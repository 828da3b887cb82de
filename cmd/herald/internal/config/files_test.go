// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// TestSecretIsReloaded replaces an app's secret while the process runs.
func TestSecretIsReloaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	put := func(text string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	}
	put("old\n")
	secret, err := SecretReader("platforms.x.clientSecretFile", file, slog.New(slog.DiscardHandler))
	if err != nil || secret() != "old" {
		t.Fatalf("got %q, %v", secret(), err)
	}
	put("new\n")
	if secret() != "new" {
		t.Errorf("got %q: no restart is needed", secret())
	}
	put("")
	if secret() != "new" {
		t.Errorf("got %q: a partially replaced file must not be used", secret())
	}
	must.Succeed(t, os.Remove(file))
	if secret() != "new" {
		t.Errorf("got %q: an unmounted Secret does not stop a running process", secret())
	}
}

func TestRoots(t *testing.T) {
	if roots, err := RootCAs("egress.caBundle", ""); roots != nil || err != nil {
		t.Errorf("without a bundle the system decides: %v, %v", roots, err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	must.Succeed(t, os.WriteFile(file, []byte("no certificate"), 0o600))
	if _, err := RootCAs("egress.caBundle", file); err == nil || !strings.Contains(err.Error(), "egress.caBundle") {
		t.Errorf("a bundle without a certificate is a mistake: %v", err)
	}
}
