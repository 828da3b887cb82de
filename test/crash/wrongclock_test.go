// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/internal/apitoken"
)

// The wrong-clock specs use these offsets.
const (
	// wrongBy is a clock's initial skew: more than the age at which a new object counts as restored.
	wrongBy = 7 * time.Minute
	// setBy is the amount by which a clock is changed during a spec.
	setBy = 20 * time.Minute
	// dueIn is the delay of a post that is published during a spec, and laterIn the delay of a post that must stay
	// scheduled, although it would be due according to the changed clock.
	dueIn, laterIn = 5 * time.Second, 15 * time.Minute
	// measuredTo is the precision with which a clock is measured. Times in the Kubernetes API's responses are whole
	// seconds, so a measurement is off by up to half a second plus half of the response time. A post may be published
	// early by this amount.
	measuredTo = 2 * time.Second
)

// wrong is a process with a wrong clock.
type wrong struct {
	*process

	// name is the name of the log, and offset the file from which the process reads its clock's error.
	name            string
	offset          string
	health, metrics string
}

// newWrong prepares a process.
func newWrong(kind string, ahead time.Duration) *wrong {
	name := fmt.Sprintf("%s-%d", kind, serial.Add(1))
	w := &wrong{name: name, offset: inFolder(name + ".offset"), health: ports.ForTest(GinkgoT()), metrics: ports.ForTest(GinkgoT())}
	w.set(ahead)
	return w
}

// set sets the process's clock, even while it runs.
func (w *wrong) set(ahead time.Duration) {
	GinkgoHelper()
	Expect(os.WriteFile(w.offset+".new", []byte(ahead.String()), 0o600)).To(Succeed())
	Expect(os.Rename(w.offset+".new", w.offset)).To(Succeed())
}

// run starts the process with a configuration and a separate log.
func (w *wrong) run(command string, config interface{ Shared() *configv1alpha1.Common }, flags ...string) {
	GinkgoHelper()
	common := config.Shared()
	common.Health.BindAddress, common.Metrics.BindAddress, common.Metrics.Plain = w.health, w.metrics, true
	data, err := yaml.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	file := inFolder(w.name + ".yaml")
	Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
	w.process = start(present.program, w.name, []string{"HERALD_CRASH_CLOCK=" + w.offset},
		append([]string{command, "--kubeconfig", inFolder("kubeconfig"), "--config", file}, flags...)...)
}

// ready waits until the process is ready.
func (w *wrong) ready(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := read(ctx, "http://"+w.health+"/readyz")
		return err
	}).Should(Succeed(), "%s is ready", w.name)
}

var skewLine = regexp.MustCompile(`(?m)^herald_clock_skew_seconds (\S+)$`)

// skew returns the clock skew that the process reports in its metrics.
func (w *wrong) skew(ctx context.Context) (time.Duration, error) {
	text, err := read(ctx, "http://"+w.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	found := skewLine.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s has no herald_clock_skew_seconds", w.name)
	}
	seconds, err := strconv.ParseFloat(found[1], 64)
	return time.Duration(math.Round(seconds * float64(time.Second))), err
}

// expectSkew expects that the process reports this skew and still works.
func (w *wrong) expectSkew(ctx context.Context, ahead time.Duration) {
	GinkgoHelper()
	Eventually(w.skew).WithArguments(ctx).Should(BeNumerically("~", ahead, measuredTo), "%s reports how far its clock is ahead", w.name)
	const line = "This machine's clock differs from the Kubernetes API's clock, which Herald uses"
	log := func(g Gomega) string {
		text, err := os.ReadFile(inFolder(w.name + ".log"))
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	if ahead == 0 {
		Expect(log(Default)).NotTo(ContainSubstring(line), "%s reports a correct clock", w.name)
	} else {
		Eventually(log).Should(ContainSubstring(line), "%s logs the difference", w.name)
	}
	w.ready(ctx)
}

// read returns the body of a response with status 200.
func read(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	return do(req, http.StatusOK)
}

func do(req *http.Request, want int) (string, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", req.Method, req.URL, resp.Status, data)
	}
	return string(data), err
}

// installed is a manager and an apiserver on separate machines, and a team with a key.
type installed struct {
	manager, apiserver *wrong
	site               string
	team               *team
	token              string
}

// newInstalled starts both processes with their clocks skewed by the given amounts.
func newInstalled(ctx context.Context, manager, apiserver time.Duration) *installed {
	GinkgoHelper()
	i := &installed{manager: newWrong("manager", manager), apiserver: newWrong("apiserver", apiserver), site: ports.ForTest(GinkgoT())}
	config := managerConfiguration()
	i.manager.run("manager", config, "--leader-identity", "crash")
	DeferCleanup(func() { i.manager.kill() }) // the process that runs then, since specs restart it
	serving := configv1alpha1.DefaultAPIServer()
	serving.Common, serving.BindAddress, serving.RequestsPerMinute = config.Common, i.site, 0
	serving.Web.Enabled, serving.MCP.Enabled = false, false
	i.apiserver.run("apiserver", serving)
	DeferCleanup(i.apiserver.kill)

	i.team = newTeamOn(ctx, v1alpha1.PlatformX)
	DeferCleanup(i.team.suspend) // the post that stays scheduled would be published during another spec
	const name = "crash"
	i.token = apitoken.New(i.team.namespace, name)
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: i.team.namespace, Name: name}}
	key.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: name, SHA256: apitoken.Hash(i.team.namespace, name, i.token)}}
	create(ctx, key)
	i.team.probed(ctx, v1alpha1.PlatformX)
	i.manager.ready(ctx)
	i.apiserver.ready(ctx)
	Eventually(func() error {
		_, err := i.request(ctx, http.MethodGet, http.StatusOK, nil)
		return err
	}).Should(Succeed(), "the apiserver accepts the key")
	return i
}

// request sends a request about posts with the team's key.
func (i *installed) request(ctx context.Context, method string, want int, body any) (string, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+i.site+"/api/v1/posts", bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+i.token)
	return do(req, want)
}

// said is a post created through the REST API.
type said struct {
	caption string
	// due is the time at which it is due by the API server's clock.
	due time.Time
}

// says creates a post with the given text, due immediately if in is zero.
func (i *installed) says(ctx context.Context, caption string, in time.Duration) said {
	GinkgoHelper()
	p := said{fmt.Sprintf("%s %d", caption, serial.Add(1)), time.Now().Add(in)}
	body := map[string]any{
		"category": v1alpha1.CategoryText, "targets": []map[string]any{{"connection_id": v1alpha1.PlatformX, "caption": p.caption}},
	}
	if in > 0 {
		body["scheduled_at"] = v1alpha1.NewTime(p.due).String()
	}
	_, err := i.request(ctx, http.MethodPost, http.StatusCreated, body)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// is expects that a post reaches a phase, and returns its platform ID. A post whose outcome is unknown does not reach
// any phase.
func (i *installed) is(ctx context.Context, p said, phase v1alpha1.PostPhase) (id string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		all, err := i.team.all(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		now := map[string]*v1alpha1.Post{}
		for _, post := range all {
			now[post.Spec.Targets[0].Caption] = post
		}
		g.Expect(now).To(HaveKey(p.caption))
		status := &now[p.caption].Status
		g.Expect(status.Phase).To(Equal(phase), "%q: %+v", p.caption, status)
		g.Expect(status.Targets).NotTo(BeEmpty())
		id = status.Targets[0].ExternalID
	}).Should(Succeed())
	return id
}

// published expects that a post is published once and not before its due time.
func (i *installed) published(ctx context.Context, p said) {
	GinkgoHelper()
	id := i.is(ctx, p, v1alpha1.PhasePosted)
	shown := i.team.shown(ctx)[words{on: v1alpha1.PlatformX, text: p.caption}]
	Expect(shown).To(HaveLen(1), "%q is shown once", p.caption)
	Expect(shown[0].ID).To(Equal(id))
	Expect(shown[0].CreatedAt).To(BeTemporally(">", p.due.Add(-measuredTo)), "%q is not shown before its time", p.caption)
}

// hears expects that n posts were published, and that all of them were reported.
func (i *installed) hears(ctx context.Context, r *webhooks, n int) {
	GinkgoHelper()
	want := i.team.events(ctx)
	Expect(want).To(HaveLen(n))
	Eventually(func() []string { return r.missing(want) }).Should(BeEmpty())
	r.verifyAll(want)
}

var _ = Describe("Processes with wrong clocks", func() {
	DescribeTable("publish due posts on time, once",
		func(ctx SpecContext, manager, apiserver time.Duration) {
			i := newInstalled(ctx, manager, apiserver)
			due := i.says(ctx, "due in a moment", dueIn)
			now := i.says(ctx, "now", 0)
			i.manager.expectSkew(ctx, manager)
			i.apiserver.expectSkew(ctx, apiserver)
			i.published(ctx, now)
			i.published(ctx, due)
		},
		// Without a correction, the apiserver dates an immediate post 7 minutes in the past, so the post counts as
		// restored from a backup, and the manager publishes early.
		Entry("the manager is ahead and the apiserver behind", wrongBy, -wrongBy),
		// Without a correction, the apiserver rejects a post due in a moment as past, and the manager does not see that
		// posts are due.
		Entry("the manager is behind and the apiserver ahead", -wrongBy, wrongBy),
	)

	DescribeTable("are unaffected when the manager's clock is set",
		func(ctx SpecContext, by time.Duration) {
			i := newInstalled(ctx, 0, 0)
			hears := i.team.notified(ctx, "hears", 0, nil)
			later := i.says(ctx, "later", laterIn)
			i.is(ctx, later, v1alpha1.PhaseScheduled)
			i.manager.expectSkew(ctx, 0)
			due := i.says(ctx, "due in a moment", dueIn)
			i.manager.set(by)
			i.manager.expectSkew(ctx, by)
			i.apiserver.expectSkew(ctx, 0)
			i.published(ctx, due)
			after := i.says(ctx, "after that", 0)
			i.published(ctx, after)
			i.hears(ctx, hears, 2)
			Expect(i.manager.timesRestarted()).To(BeZero(), "the manager keeps its lease when its clock is set")
			i.manager.kill()
			i.manager.run("manager", managerConfiguration(), "--leader-identity", "crash")
			restarted := i.says(ctx, "after a restart with the wrong clock", 0)
			i.published(ctx, restarted)
			i.hears(ctx, hears, 3)
			i.is(ctx, later, v1alpha1.PhaseScheduled)
			Expect(i.team.shown(ctx)).NotTo(HaveKey(words{on: v1alpha1.PlatformX, text: later.caption}), "the post is not due yet")
		},
		Entry("forward: a post that is due in 15 minutes waits", setBy),
		Entry("back: a due post is published", -setBy),
	)
})
