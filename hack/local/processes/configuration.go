// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/workspace"
)

// sandboxLag is how long a new post may be missing from the listings of a platform. The sandbox's lag only when a test asks
// for it; this is about what the real platforms show.
const sandboxLag = 5 * time.Second

// writeConfigurations writes the files of manager and apiserver. Metrics are plain: they are for this machine only.
func (s *Setup) writeConfigurations() error {
	secret := s.path("client-secret")
	if err := workspace.WriteFile(secret, []byte(contextName+"\n"), 0o600); err != nil {
		return err
	}
	manager := configv1alpha1.DefaultManager()
	manager.Common = s.common(secret, managerHealth, ManagerMetrics)
	// Whoever tries retention here does not want to wait for an hour.
	manager.Retention.LeastInCluster.Duration = 0
	manager.Webhook.BindAddress, manager.Webhook.Hosts = s.Address(ManagerWebhook), []string{"127.0.0.1"}
	if s.EditManager != nil {
		s.EditManager(manager)
	}
	apiserver := configv1alpha1.DefaultAPIServer()
	apiserver.Common = s.common(secret, apiserverHealth, APIServerMetrics)
	apiserver.BindAddress, apiserver.SiteURL = s.Address(Site), s.URL(Site)
	// All clients have the one address of this machine.
	apiserver.RequestsPerMinute, apiserver.MaxConnectionsPerAddress = 0, 0
	// Agents that are tried with it have their documents on this machine.
	apiserver.Web.Agents.LoopbackClients = true
	// There is no load balancer that has to learn of the end.
	apiserver.Shutdown.Delay.Duration = 0
	if s.EditAPIServer != nil {
		s.EditAPIServer(apiserver)
	}
	for process, config := range map[string]any{Manager: manager, APIServer: apiserver} {
		data, err := yaml.Marshal(config)
		if err != nil {
			return fmt.Errorf("write the configuration of %s: %w", process, err)
		}
		if err := workspace.WriteFile(s.configFile(process), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// common is what both processes have. Browsers and clients on this machine reach the store by the same address as Herald.
func (s *Setup) common(secret, health, metrics string) configv1alpha1.Common {
	return configv1alpha1.Common{
		Health:  configv1alpha1.Endpoint{BindAddress: s.Address(health)},
		Metrics: configv1alpha1.Metrics{Endpoint: configv1alpha1.Endpoint{BindAddress: s.Address(metrics)}, Plain: true},
		Media: &configv1alpha1.Media{
			Endpoint: s.URL(Store), Region: "us-east-1", Bucket: Bucket, PathStyle: true, CredentialsFile: s.storeKeyFile(),
		},
		Platforms: s.platforms(secret),
	}
}

// platforms points every platform to the sandbox. It knows any client and takes any secret.
func (s *Setup) platforms(secret string) configv1alpha1.Platforms {
	var platforms configv1alpha1.Platforms
	sections := platforms.Sections()
	for _, platform := range s.Platforms {
		base := s.PlatformURL(platform)
		section := &configv1alpha1.Platform{
			APIURL: base, WebURL: base, AuthorizeURL: base, FacebookURL: base + "/graph.facebook.com", UploadURL: base + "/rupload.facebook.com",
			ClientID: contextName, ClientSecretFile: secret,
		}
		section.ListingLag.Duration = sandboxLag
		*sections[string(platform)] = section
	}
	return platforms
}
