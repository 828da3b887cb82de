// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/hack/local/cluster"
)

// The service accounts of Herald's processes, as in config/rbac.
const (
	ManagerAccount   = "system:serviceaccount:herald-system:herald-manager"
	APIServerAccount = "system:serviceaccount:herald-system:herald-apiserver"
)

// Installed applies config/rbac and returns the client configuration of a service account, with the permissions and the
// admission policies of an installation.
func (e *Environment) Installed(ctx context.Context, account string) (*rest.Config, error) {
	if err := cluster.ApplyFolders(ctx, e.Client, filepath.Join(Root(), "config", "rbac")); err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(e.Config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: account}
	return limited, nil
}
