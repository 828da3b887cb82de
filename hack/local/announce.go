// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/workspace"
)

// announce writes the file that programs read and tells people where everything is. It is called when all is ready.
func (a *app) announce(s settings, token string, begun time.Time) error {
	kubeconfig := s.kubeconfig(certAdmin)
	baseURL := s.siteURL() + "/api/v1"
	err := workspace.WriteEnv(a.workspace.State("env"), []workspace.Variable{
		{Name: "HERALD_SITE_URL", Value: s.siteURL()},
		{Name: "HERALD_BASE_URL", Value: baseURL},
		{Name: "HERALD_API_KEY", Value: token},
		{Name: "HERALD_SANDBOX_URL", Value: s.sandboxURL()},
		{Name: "HERALD_NAMESPACE", Value: cluster.DemoNamespace},
		{Name: "KUBECONFIG", Value: kubeconfig},
	})
	if err != nil {
		return err
	}
	a.steps.Sayf("")
	a.steps.Sayf("Herald is ready (%.1f s).", time.Since(begun).Seconds())
	a.steps.Sayf("")
	a.steps.Sayf("  REST API   %s   (key: %s)", baseURL, token)
	a.steps.Sayf("  API docs   %s/docs", s.siteURL())
	a.steps.Sayf("  Sandbox    %s   what the simulated platforms show", s.sandboxURL())
	a.steps.Sayf("  Logs       %s", display(a.workspace.State("log")))
	a.steps.Sayf("")
	a.steps.Sayf("Post something:")
	a.steps.Sayf("")
	a.steps.Sayf("%s", a.curlLine(baseURL, token))
	a.steps.Sayf("")
	a.steps.Sayf("or with kubectl (`make tools` builds it into bin/):")
	a.steps.Sayf("")
	a.steps.Sayf("  export KUBECONFIG=%s", shellWord(kubeconfig))
	a.steps.Sayf("  kubectl apply -f %s", display(a.workspace.Path("config", "samples")))
	a.steps.Sayf("  kubectl get posts --watch")
	a.steps.Sayf("")
	a.steps.Sayf("In another terminal, `. %s` sets HERALD_BASE_URL, HERALD_API_KEY and more.", display(a.workspace.State("env")))
	a.steps.Sayf("Ctrl-C stops everything.")
	return nil
}

// curlLine posts to the first demo connection when it is pasted into a shell.
func (a *app) curlLine(baseURL, token string) string {
	body := `{"category":"text","targets":[{"connection_id":"` + cluster.ConnectionName(demoPlatforms()[0]) + `","caption":"Hello from Herald"}]}`
	return strings.Join([]string{
		"  curl -sS " + baseURL + "/posts",
		"    -H " + workspace.ShellQuote("Authorization: Bearer "+token),
		"    -H 'Content-Type: application/json'",
		"    -d " + workspace.ShellQuote(body),
	}, " \\\n")
}

// display shortens a path to one from the working directory, as a person would type it.
func display(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return relative
}

// shellWord quotes text only where a shell needs it.
func shellWord(text string) string {
	if strings.ContainsAny(text, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return workspace.ShellQuote(text)
	}
	return text
}
