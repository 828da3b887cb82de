// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/hack/local/workspace"
)

const summary = `
Herald is ready (%.1f s).

  Web        %s
  REST API   %s   (key: %s)
  MCP        %s/mcp   for agents: with OAuth or the same key
  API docs   %s/docs
  Sandbox    %s   what the simulated platforms show
  Logs       .local/log

The link works once; ` + "`%s`" + ` prints a new one.

Post something:

%s

or with kubectl (` + "`make tools`" + ` builds it into bin/):

  export KUBECONFIG=%s
  kubectl apply -f config/samples
  kubectl get posts --watch

In another terminal, ` + "`. .local/env`" + ` sets HERALD_BASE_URL, HERALD_API_KEY and more.
Ctrl-C stops everything.
`

const blueskySummary = `
The account %[1]s is on Bluesky's own server, which shows its posts as JSON:

  %[2]s/xrpc/com.atproto.repo.listRecords?repo=%[3]s&collection=app.bsky.feed.post
`

const noBlueskySummary = `
The account %s is simulated, like the others. %s
`

// announce writes the file with the run's variables for programs, and prints the URLs for users. Call it once all
// processes are ready.
func (a *app) announce(setup *processes.Setup, token, signIn string, started time.Time) error {
	site, sandbox, kubeconfig := setup.URL(processes.Site), setup.URL(processes.Sandbox), setup.Kubeconfig(processes.Admin)
	baseURL := site + "/api/v1"
	err := workspace.WriteEnv(a.state("env"), []workspace.Variable{
		{Name: "HERALD_SITE_URL", Value: site},
		{Name: "HERALD_BASE_URL", Value: baseURL},
		{Name: "HERALD_MCP_URL", Value: site + "/mcp"},
		{Name: "HERALD_API_KEY", Value: token},
		{Name: "HERALD_SANDBOX_URL", Value: sandbox},
		{Name: "HERALD_SIGNIN_URL", Value: signIn},
		{Name: "HERALD_NAMESPACE", Value: cluster.DemoNamespace},
		{Name: "KUBECONFIG", Value: kubeconfig},
	})
	if err != nil {
		return err
	}
	fmt.Printf(summary, time.Since(started).Seconds(), signIn, baseURL, token, site, site, sandbox, a.linkCommand(setup), curlLine(baseURL, token), shellWord(kubeconfig))
	if setup.Bluesky == "" {
		has := func(program string) bool { _, err := exec.LookPath(program); return err == nil }
		fmt.Printf(noBlueskySummary, cluster.ConnectionName(v1alpha1.PlatformBluesky), processes.NoBluesky(runtime.GOOS, has))
		return nil
	}
	id, _, err := setup.BlueskyAccount()
	if err == nil {
		fmt.Printf(blueskySummary, cluster.ConnectionName(v1alpha1.PlatformBluesky), setup.URL(processes.Bluesky), id)
	}
	return err
}

// linkLife is how long a local run's one-time link is valid.
const linkLife = 24 * time.Hour

// signInURL creates a one-time link to the web application.
func signInURL(ctx context.Context, setup *processes.Setup) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", setup.Kubeconfig(processes.Admin))
	if err != nil {
		return "", err
	}
	secrets, err := kube.NewSecrets(config, "herald-local", processes.SystemNamespace)
	if err != nil {
		return "", err
	}
	token, err := session.AddLink(ctx, secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, linkLife)
	if err != nil {
		return "", fmt.Errorf("create a one-time sign-in link: %w", err)
	}
	return setup.URL(processes.Site) + signin.LinkPath + token, nil
}

// linkCommand returns the shell command that prints another one-time link.
func (a *app) linkCommand(setup *processes.Setup) string {
	return strings.Join([]string{
		"bin/herald signin-link --config", shellWord(a.state(processes.APIServer + ".yaml")),
		"--kubeconfig", shellWord(setup.Kubeconfig(processes.Admin)), "--namespace", processes.SystemNamespace,
	}, " ")
}

// curlLine returns the shell command that posts to the first demo connection.
func curlLine(baseURL, token string) string {
	body := `{"category":"text","targets":[{"connection_id":"` + cluster.ConnectionName(demoPlatforms()[0]) + `","caption":"Hello from Herald"}]}`
	return strings.Join([]string{
		"  curl -sS " + baseURL + "/posts",
		"    -H " + workspace.ShellQuote("Authorization: Bearer "+token),
		"    -H 'Content-Type: application/json'",
		"    -d " + workspace.ShellQuote(body),
	}, " \\\n")
}

// shellWord quotes text only if a shell needs the quotes.
func shellWord(text string) string {
	if strings.ContainsAny(text, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return workspace.ShellQuote(text)
	}
	return text
}
