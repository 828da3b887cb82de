// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/cmd/herald/internal/cluster"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/cmd/herald/internal/process"
)

const (
	// podConfig is the path of the configuration file in the apiserver's pod.
	podConfig = "/etc/herald/config/config.yaml"
	// linkLife is the default lifetime of a link, longestLink the maximum.
	linkLife    = 15 * time.Minute
	longestLink = 24 * time.Hour
)

type linkFlags struct {
	config, kubeconfig string
	namespace, site    string
	valid              time.Duration
}

func parseLinkFlags(args []string) (*linkFlags, error) {
	f := &linkFlags{}
	flags := process.NewFlagSet("signin-link")
	flags.StringVar(&f.config, "config", podConfig, "file of kind "+configv1alpha1.APIServerKind+", the apiserver's own")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.StringVar(&f.namespace, "namespace", "", "namespace in which Herald is installed; empty for the pod's namespace or the one in the kubeconfig's context")
	flags.StringVar(&f.site, "site", "", "address of the site instead of siteURL, such as a port-forward's: http://127.0.0.1:8080")
	flags.DurationVar(&f.valid, "valid", linkLife, "lifetime of the link, at most 24h")
	if err := process.Parse(flags, args); err != nil {
		return nil, err
	}
	if f.valid <= 0 || f.valid > longestLink {
		return nil, process.UsageError{Err: fmt.Errorf("--valid=%s: want more than zero, and %s at most", f.valid, longestLink)}
	}
	if f.site != "" {
		if u, err := url.Parse(f.site); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "" {
			return nil, process.UsageError{Err: fmt.Errorf("--site=%s: want an address such as http://127.0.0.1:8080", f.site)}
		}
	}
	return f, nil
}

// runSignInLink prints the URL of a new one-time link. It signs in as the user herald:link.
func runSignInLink(ctx context.Context, args []string) error {
	f, err := parseLinkFlags(args)
	if err != nil {
		return err
	}
	c, err := config.APIServer(f.config)
	if err != nil {
		return err
	}
	site, err := f.siteOf(c)
	if err != nil {
		return err
	}
	api, err := cluster.Connect(f.kubeconfig, "herald-signin-link/"+version)
	if err != nil {
		return err
	}
	namespace := cmp.Or(f.namespace, api.Namespace)
	secrets, err := kube.NewSecrets(api.Config, api.UserAgent, namespace)
	if err != nil {
		return err
	}
	return printLink(ctx, os.Stdout, secrets, c.Web.SignInSecret, namespace, site, f.valid)
}

// siteOf returns the base URL of a link.
func (f *linkFlags) siteOf(c *configv1alpha1.APIServerConfiguration) (string, error) {
	switch {
	case !c.Web.Enabled:
		return "", fmt.Errorf("%s: web.enabled is false, so there is nothing to sign in to", f.config)
	case c.Web.OIDC != nil:
		return "", fmt.Errorf("%s: people sign in with %s (web.oidc), and one-time links are not accepted there; open the site", f.config, c.Web.OIDC.IssuerURL)
	case f.site != "":
		return strings.TrimRight(f.site, "/"), nil
	case c.SiteURL != "":
		return strings.TrimRight(c.SiteURL, "/"), nil
	default:
		return "", process.UsageError{Err: errors.New("the configuration has no siteURL: name the site's address with --site")}
	}
}

func printLink(ctx context.Context, out io.Writer, secrets session.SecretClient, name, namespace, site string, valid time.Duration) error {
	token, err := session.AddLink(ctx, secrets, name, clock.RealClock{}, valid)
	if err != nil {
		return fmt.Errorf("cannot create a link in namespace %s (set another one with --namespace): %w", namespace, err)
	}
	_, err = fmt.Fprintln(out, site+signin.LinkPath+token)
	return err
}
