// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/hack/local/workspace"
)

const summary = `
Herald is ready (%.1f s).

  REST API   %s   (key: %s)
  API docs   %s/docs
  Sandbox    %s   what the simulated platforms show
  Logs       .local/log

Post something:

%s

or with kubectl (` + "`make tools`" + ` builds it into bin/):

  export KUBECONFIG=%s
  kubectl apply -f config/samples
  kubectl get posts --watch

In another terminal, ` + "`. .local/env`" + ` sets HERALD_BASE_URL, HERALD_API_KEY and more.
Ctrl-C stops everything.
`

// announce writes the file that programs read and tells people where everything is. It is called when all is ready.
func (a *app) announce(setup *processes.Setup, token string, begun time.Time) error {
	site, sandbox, kubeconfig := setup.URL(processes.Site), setup.URL(processes.Sandbox), setup.Kubeconfig(processes.Admin)
	baseURL := site + "/api/v1"
	err := workspace.WriteEnv(a.state("env"), []workspace.Variable{
		{Name: "HERALD_SITE_URL", Value: site},
		{Name: "HERALD_BASE_URL", Value: baseURL},
		{Name: "HERALD_API_KEY", Value: token},
		{Name: "HERALD_SANDBOX_URL", Value: sandbox},
		{Name: "HERALD_NAMESPACE", Value: cluster.DemoNamespace},
		{Name: "KUBECONFIG", Value: kubeconfig},
	})
	if err != nil {
		return err
	}
	fmt.Printf(summary, time.Since(begun).Seconds(), baseURL, token, site, sandbox, curlLine(baseURL, token), shellWord(kubeconfig))
	return nil
}

// curlLine posts to the first demo connection when it is pasted into a shell.
func curlLine(baseURL, token string) string {
	body := `{"category":"text","targets":[{"connection_id":"` + cluster.ConnectionName(demoPlatforms()[0]) + `","caption":"Hello from Herald"}]}`
	return strings.Join([]string{
		"  curl -sS " + baseURL + "/posts",
		"    -H " + workspace.ShellQuote("Authorization: Bearer "+token),
		"    -H 'Content-Type: application/json'",
		"    -d " + workspace.ShellQuote(body),
	}, " \\\n")
}

// shellWord quotes text only where a shell needs it.
func shellWord(text string) string {
	if strings.ContainsAny(text, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return workspace.ShellQuote(text)
	}
	return text
}
