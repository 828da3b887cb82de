// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	// leastScore is the minimum score in each category, out of 1.
	leastScore = 0.95
	// lighthouseLimit is the timeout per page. It allows for a busy machine.
	lighthouseLimit = 4 * time.Minute
)

// scores are the categories of a Lighthouse report and their audits.
type scores struct {
	Categories map[string]struct {
		Title string   `json:"title"`
		Score *float64 `json:"score"`
		Refs  []struct {
			ID     string  `json:"id"`
			Weight float64 `json:"weight"`
		} `json:"auditRefs"`
	} `json:"categories"`
	Audits map[string]struct {
		Title   string   `json:"title"`
		Score   *float64 `json:"score"`
		Display string   `json:"displayValue"`
	} `json:"audits"`
	RuntimeError *struct {
		Message string `json:"message"`
	} `json:"runtimeError"`
}

// lost returns the audits that cost a category points.
func (s scores) lost(category string) string {
	var text strings.Builder
	for _, ref := range s.Categories[category].Refs {
		audit := s.Audits[ref.ID]
		if ref.Weight > 0 && audit.Score != nil && *audit.Score < 1 {
			fmt.Fprintf(&text, "\n  %.2f  %s: %s %s", *audit.Score, ref.ID, audit.Title, audit.Display)
		}
	}
	return text.String()
}

// lighthouse measures a page with the default settings: a phone on a slow network. cookies is the Cookie header of a
// signed-in user, or empty.
func lighthouse(url, cookies string) scores {
	GinkgoHelper()
	modules := filepath.Join(checkout, "hack", "lighthouse", "node_modules")
	node := "node"
	if brought, err := filepath.Glob(filepath.Join(modules, "node-*", "bin", "node")); err == nil && len(brought) == 1 {
		node = brought[0]
	}
	headers := map[string]string{}
	if cookies != "" {
		headers["Cookie"] = cookies
	}
	data, err := json.Marshal(headers)
	must(err)
	headersFile := filepath.Join(GinkgoT().TempDir(), "headers.json")
	must(save(headersFile, data))

	flags := "--headless=new --no-proxy-server"
	if os.Geteuid() == 0 {
		flags += " --no-sandbox"
	}
	ctx, cancel := context.WithTimeout(context.Background(), lighthouseLimit)
	defer cancel()
	command := exec.CommandContext(ctx, node, filepath.Join(modules, "lighthouse", "cli", "index.js"), url,
		"--output=json", "--output-path=stdout", "--quiet", "--no-enable-error-reporting", "--chrome-flags="+flags, "--extra-headers="+headersFile,
		"--only-categories=performance,accessibility,best-practices,seo")
	command.Env = append(os.Environ(), "CHROME_PATH="+browser.Path)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	Expect(command.Run()).To(Succeed(), "`make lighthouse` installs the dependencies; output:\n%s", &complaints)
	var s scores
	must(json.Unmarshal(out.Bytes(), &s))
	Expect(s.RuntimeError).To(BeNil())
	return s
}

// tries limits the number of measurements of a page. There may be several because other load on the machine lowers the
// scores.
const tries = 3

// expectGood requires leastScore in each category of a page.
func expectGood(name, url, cookies string) {
	GinkgoHelper()
	var problems string
	for range tries {
		var row string
		row, problems = summarizeScores(lighthouse(url, cookies))
		GinkgoWriter.Printf("%-24s%s\n", name, row)
		if problems == "" {
			return
		}
	}
	Expect(problems).To(BeEmpty(), name)
}

// summarizeScores returns the scores as a table row, and the categories below leastScore.
func summarizeScores(s scores) (row, problems string) {
	GinkgoHelper()
	for _, id := range []string{"performance", "accessibility", "best-practices", "seo"} {
		category := s.Categories[id]
		Expect(category.Score).NotTo(BeNil(), id)
		row += fmt.Sprintf("  %s %3.0f", category.Title, *category.Score*100)
		if *category.Score < leastScore {
			problems += category.Title + ":" + s.lost(id) + "\n"
		}
	}
	return row, problems
}

var _ = Describe("Lighthouse", Label("lighthouse"), func() {
	It("gives the documentation a high score", func() { expectGood("docs", herald().Site()+"/docs", "") })
	It("gives the sandbox a high score", func() { expectGood("sandbox", herald().Sandbox()+"/", "") })
})
