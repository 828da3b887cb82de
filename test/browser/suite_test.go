// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser tests pages in headless Chromium: the pages of the whole stack, which runs as with `make run`, and the web application's
// scripts on small test pages. README.md in this folder describes how to write a spec.
package browser

import (
	"context"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/stack"
)

// pageLimit is the maximum number of bytes that a page may transfer with an empty cache.
const pageLimit = 52 * 1000

var (
	screenshots = flag.String("screenshots", "", "folder that takes a picture of every page in every look")
	attachTo    = flag.String("attach", "", "use the run that has written this file, such as .local/env, instead of a new one")
)

var (
	checkout string
	browser  *chrome.Browser
	axe      string
)

func TestBrowser(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "Browser")
	for _, failure := range failures {
		t.Error(failure)
	}
}

// failures contains the name of each failed spec and the start of its message. They are printed last: often only the
// end of a long log is stored, and Ginkgo's summary there has no messages.
var failures []string

var _ = ReportAfterEach(func(report SpecReport) {
	const most = 1000
	if report.Failed() {
		message := report.FailureMessage()
		failures = append(failures, report.FullText()+"\n"+message[:min(len(message), most)])
	}
})

var _ = BeforeSuite(func() {
	var err error
	checkout, err = filepath.Abs(filepath.Join("..", ".."))
	must(err)
	program, err := os.ReadFile(filepath.Join(checkout, "bin", "axe.min.js"))
	Expect(err).NotTo(HaveOccurred(), "run `make test-browser`, which fetches it")
	axe = string(program)
	browser, err = chrome.Start(context.Background())
	must(err)
	DeferCleanup(browser.Close)
})

// herald is the whole stack, started by the first spec that needs it.
var herald = sync.OnceValue(func() *stack.Stack {
	if *attachTo != "" {
		s, err := stack.Attach(*attachTo)
		must(err)
		return s
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(checkout, "bin")
	}
	dir, err := os.MkdirTemp("", "browser")
	must(err)
	started = dir
	s, err := stack.Start(context.Background(), stack.Options{Checkout: checkout, Assets: assets, Dir: dir, Out: GinkgoWriter})
	must(err)
	running = s
	return s
})

// AfterSuite stops and removes these.
var (
	started string
	running *stack.Stack
)

var _ = AfterSuite(func() {
	if idp != nil {
		idp.Close()
	}
	if running != nil {
		Expect(running.Stop()).To(Succeed())
	}
	if started != "" {
		Expect(os.RemoveAll(started)).To(Succeed())
	}
})

func must(err error) {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
}

// newPage opens a tab. The page must have no problems at the end of the spec.
func newPage(options chrome.Options) *chrome.Page {
	GinkgoHelper()
	page, err := browser.NewPage(options)
	must(err)
	DeferCleanup(func() {
		defer page.Close()
		if CurrentSpecReport().Failed() {
			saveScreenshot(page)
			return
		}
		Expect(page.Problems()).To(BeEmpty(), "problems in the page's console")
	})
	return page
}

// saveScreenshot saves a screenshot of the page after a failed spec.
func saveScreenshot(page *chrome.Page) {
	picture, err := page.Screenshot()
	if err != nil {
		GinkgoWriter.Println("no picture of the failure:", err)
		return
	}
	path := filepath.Join(checkout, "bin", "browser", slug(CurrentSpecReport().FullText())+".png")
	if err := save(path, picture); err != nil {
		GinkgoWriter.Println("no picture of the failure:", err)
		return
	}
	GinkgoWriter.Println("The page when it failed:", path)
	for _, problem := range page.Problems() {
		GinkgoWriter.Println("The page complained:", problem)
	}
}

func save(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func slug(text string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// inEveryLook checks the requirements for every page: axe finds no violations and nothing is wider than the window, in
// light and dark mode and on a phone. With -screenshots it takes screenshots.
func inEveryLook(page *chrome.Page, name string) {
	GinkgoHelper()
	for _, look := range chrome.Looks {
		must(page.SetLook(look))
		violations, err := page.Audit(axe)
		must(err)
		for _, violation := range violations {
			Expect(violation.String()).To(BeEmpty(), "%s, %s", name, look.Name)
		}
		expectFit(page, name, look)
	}
	must(page.SetLook(chrome.Light))
}

// expectFit checks that a page has no horizontal scroll bar. With -screenshots it takes a screenshot.
func expectFit(page *chrome.Page, name string, look chrome.Look) {
	GinkgoHelper()
	over, err := chrome.Eval[int](page, "document.documentElement.scrollWidth - window.innerWidth")
	must(err)
	Expect(over).To(BeNumerically("<=", 0), "%s, %s: pixels beyond the right edge", name, look.Name)
	if *screenshots != "" {
		picture, err := page.Screenshot()
		must(err)
		must(save(filepath.Join(*screenshots, name+"-"+look.Name+".png"), picture))
	}
}

// expectLight checks pageLimit for a page just opened with an empty cache, in a new tab or by OpenCold.
func expectLight(page *chrome.Page) {
	GinkgoHelper()
	// Account images are excluded. They come from the platforms, and their number depends on earlier specs.
	address, err := page.URL()
	must(err)
	site, err := url.Parse(address)
	must(err)
	total, byURL := page.Weight(site.Scheme + "://" + site.Host)
	Expect(total).To(BeNumerically(">", 0))
	Expect(total).To(BeNumerically("<=", pageLimit), "bytes over the wire:\n%s", byURL)
	GinkgoWriter.Printf("%d bytes over the wire\n", total)
}
