// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/herald-social/herald/hack/local/workspace"
)

// contextName is what kubectl shows as the current context.
const contextName = "herald-local"

// WriteKubeconfig writes a file that holds all that is needed to reach the server as the identity of that name in dir.
func WriteKubeconfig(path, server, dir, name, namespace string) error {
	var contents [3][]byte
	for i, file := range []string{CA(dir), Cert(dir, name), Key(dir, name)} {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		contents[i] = data
	}
	config := api.NewConfig()
	config.Clusters[contextName] = &api.Cluster{Server: server, CertificateAuthorityData: contents[0]}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = contextName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return workspace.WriteFile(path, data, 0o600)
}
