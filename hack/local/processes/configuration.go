// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/workspace"
)

// sandboxLag is the listing lag configured for the platforms. The sandbox only has a lag if a test sets one; this value
// covers the real platforms.
const sandboxLag = 5 * time.Second

// Configure writes the configuration files of the manager and the apiserver, which serve metrics without TLS and
// authorization, on this machine only. Prepare calls it. Call it again if EditManager or EditAPIServer has changed.
func (s *Setup) Configure() error {
	if err := workspace.WriteFile(s.clientSecretFile(), []byte(contextName+"\n"), 0o600); err != nil {
		return err
	}
	apiserver := configv1alpha1.DefaultAPIServer()
	apiserver.Common = s.common(apiserverHealth, APIServerMetrics)
	apiserver.BindAddress, apiserver.SiteURL = s.Address(Site), s.URL(Site)
	// All clients have the same loopback address.
	apiserver.RequestsPerMinute, apiserver.MaxConnectionsPerAddress = 0, 0
	// Local agents serve their client metadata documents on this machine.
	apiserver.Web.Agents.LoopbackClients = true
	// There is no load balancer that needs time to detect the shutdown.
	apiserver.Shutdown.Delay.Duration = 0
	if s.EditAPIServer != nil {
		s.EditAPIServer(apiserver)
	}
	return errors.Join(s.writeConfiguration(Manager, s.managerConfiguration()), s.writeConfiguration(APIServer, apiserver))
}

func (s *Setup) managerConfiguration() *configv1alpha1.ManagerConfiguration {
	manager := configv1alpha1.DefaultManager()
	manager.Common = s.common(managerHealth, ManagerMetrics)
	// Users who try retention locally should not have to wait an hour.
	manager.Retention.LeastInCluster.Duration = 0
	manager.SiteURL = s.URL(Site)
	manager.Webhook.BindAddress, manager.Webhook.Hosts = s.Address(ManagerWebhook), []string{"127.0.0.1"}
	if s.EditManager != nil {
		s.EditManager(manager)
	}
	return manager
}

func (s *Setup) writeConfiguration(process string, config any) error {
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("write the configuration of %s: %w", process, err)
	}
	return workspace.WriteFile(s.configFile(process), data, 0o600)
}

// common returns the configuration that both processes share. Browsers and clients on this machine reach the store at
// the same address as Herald.
func (s *Setup) common(health, metrics string) configv1alpha1.Common {
	return configv1alpha1.Common{
		Health:  configv1alpha1.Endpoint{BindAddress: s.Address(health)},
		Metrics: configv1alpha1.Metrics{Endpoint: configv1alpha1.Endpoint{BindAddress: s.Address(metrics)}, Plain: true},
		Media: &configv1alpha1.Media{
			Endpoint: s.URL(Store), Region: "us-east-1", Bucket: Bucket, PathStyle: true, CredentialsFile: s.storeKeyFile(),
		},
		Platforms: s.platforms(),
	}
}

// platforms points every platform to the sandbox, which accepts any client and any secret.
func (s *Setup) platforms() configv1alpha1.Platforms {
	platforms := configv1alpha1.Platforms{Sandbox: configv1alpha1.Sandbox{URL: s.URL(Sandbox)}}
	sections := platforms.Sections()
	for _, platform := range s.Platforms {
		section := &configv1alpha1.Platform{ClientID: contextName, ClientSecretFile: s.clientSecretFile()}
		section.ListingLag.Duration = sandboxLag
		*sections[string(platform)] = section
	}
	if s.Bluesky != "" {
		platforms.Bluesky = &configv1alpha1.Platform{Server: s.URL(Bluesky)}
	}
	return platforms
}
