// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package clockcondition

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/test/envtest"
)

func TestClockCondition(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the condition of a process's own pod")
}

const home = "herald-system"

var (
	admin client.Client
	// installed is the manager's account, restricted by the roles and policies of config/rbac.
	installed *rest.Config
)

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	env, err := envtest.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin = env.Client
	installed, err = env.Installed(ctx, envtest.ManagerAccount)
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Create(ctx, podOf("neighbour"))).To(Succeed())
	Eventually(func() error {
		_, err := podsBy("other").Patch(ctx, "neighbour", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
		return err
	}).Should(MatchError(ContainSubstring("herald-own-pod")), "the policy is in force a moment after it was stored")
})

// podsBy returns the client of the installation's pods with the manager's account and the token of one of its pods.
func podsBy(pod string, wrap ...func(*rest.Config)) corev1client.PodInterface {
	GinkgoHelper()
	config := rest.CopyConfig(installed)
	config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {pod}}
	for _, add := range wrap {
		add(config)
	}
	c, err := corev1client.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return c.Pods(home)
}

func podOf(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{Name: "manager", Image: "herald", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
}

// process is a process whose clock the spec controls.
type process struct {
	*Writer

	clock *clocktesting.FakeClock
	state *apiclock.Measurement
	log   *bytes.Buffer
}

// begins is the start time of processes by their clocks.
var begins = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// start returns a process in an existing or a new pod.
func start(pod string) *process {
	p := &process{clock: clocktesting.NewFakeClock(begins), state: &apiclock.Measurement{Measured: true}, log: &bytes.Buffer{}}
	p.Writer = &Writer{
		Pods: podsBy(pod), Pod: pod, State: func() apiclock.Measurement { return *p.state }, Clock: p.clock,
		Log: slog.New(slog.NewTextHandler(p.log, nil)),
	}
	return p
}

// conditionOf returns the condition of a pod and the resourceVersion of the pod.
func conditionOf(ctx context.Context, pod string) (condition corev1.PodCondition, version string) {
	GinkgoHelper()
	stored := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: home, Name: pod}, stored)).To(Succeed())
	for _, c := range stored.Status.Conditions {
		if c.Type == Type {
			condition = c
		}
	}
	return condition, stored.ResourceVersion
}

var _ = Describe("A process in a pod", func() {
	const name = "herald-manager-1"

	BeforeEach(func(ctx SpecContext) {
		Expect(admin.Create(ctx, podOf(name))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.Delete(ctx, podOf(name), client.GracePeriodSeconds(0))).To(Succeed())
		})
	})

	It("says that its clock agrees, beside what others say of the pod", func(ctx SpecContext) {
		Expect(admin.Status().Patch(ctx, podOf(name), client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)))).To(Succeed())
		p := start(name)
		p.report(ctx)
		Expect(p.log.String()).To(BeEmpty())
		got, _ := conditionOf(ctx, name)
		Expect(got.Status).To(Equal(corev1.ConditionTrue))
		Expect(got.LastTransitionTime.Time).To(BeTemporally("==", begins))
		stored := &corev1.Pod{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: home, Name: name}, stored)).To(Succeed())
		Expect(stored.Status.Conditions).To(ContainElement(HaveField("Type", corev1.PodReady)))
	})

	It("writes when something changes, and not otherwise", func(ctx SpecContext) {
		p := start(name)
		p.report(ctx)
		_, before := conditionOf(ctx, name)
		p.clock.Step(time.Hour)
		p.report(ctx)
		_, after := conditionOf(ctx, name)
		Expect(after).To(Equal(before), "nothing changed, and the pod was written")

		p.state.Correction = 61 * time.Second
		p.report(ctx)
		got, _ := conditionOf(ctx, name)
		Expect(got.Status).To(Equal(corev1.ConditionFalse))
		Expect(got.Reason).To(Equal(ReasonCorrected))
		Expect(got.Message).To(ContainSubstring("1m1s behind"))
		Expect(got.LastTransitionTime.Time).To(BeTemporally("==", begins.Add(time.Hour)))

		p.clock.Step(time.Hour)
		p.state.Correction = 63 * time.Second
		p.report(ctx)
		got, _ = conditionOf(ctx, name)
		Expect(got.Message).To(ContainSubstring("1m3s behind"))
		Expect(got.LastTransitionTime.Time).To(BeTemporally("==", begins.Add(time.Hour)), "it was wrong all the time")
	})

	It("goes on where the container before it ended", func(ctx SpecContext) {
		start(name).report(ctx)
		_, before := conditionOf(ctx, name)
		p := start(name)
		p.clock.Step(time.Hour)
		p.report(ctx)
		got, after := conditionOf(ctx, name)
		Expect(got.LastTransitionTime.Time).To(BeTemporally("==", begins), "it agreed all the time")
		Expect(after).To(Equal(before), "nothing changed, and the pod was written")
	})

	It("looks once a minute", func(ctx SpecContext) {
		p := start(name)
		var looks atomic.Int64
		p.State = func() apiclock.Measurement {
			looks.Add(1)
			return apiclock.Measurement{Measured: true}
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.Run(running)
		}()
		DeferCleanup(func() {
			stop()
			<-ended
		})
		Eventually(looks.Load).Should(BeEquivalentTo(1), "at once")
		Eventually(p.clock.HasWaiters).Should(BeTrue())
		p.clock.Step(time.Minute)
		Eventually(looks.Load).Should(BeEquivalentTo(2), "and a minute later")
	})

	It("says by how much the clock of its machine is off, as the answers of the API server tell it", func(ctx SpecContext) {
		p := start(name)
		machine := clocktesting.NewFakeClock(time.Now().Add(-time.Hour))
		measured := apiclock.New(apiclock.Options{Base: machine})
		p.Pods = podsBy(name, func(config *rest.Config) { config.Wrap(measured.Wrap) })
		p.State, p.Clock = measured.Measurement, measured
		p.report(ctx)
		got, _ := conditionOf(ctx, name)
		Expect(got.Status).To(Equal(corev1.ConditionFalse), "the answer that it read the pod by has told it")
		Expect(got.Message).To(MatchRegexp(`is (1h0m|59m\d)[0-9.]+s behind that of the Kubernetes API`))
		Expect(got.LastTransitionTime.Time).To(BeTemporally(">", machine.Now().Add(50*time.Minute)), "times in the status are by the API's clock")
	})
})

var _ = Describe("A process that cannot write into its pod", func() {
	It("says so once, and again after it could meanwhile", func(ctx SpecContext) {
		const name = "herald-manager-2"
		p := start(name)
		for range 3 {
			p.report(ctx)
		}
		Expect(bytes.Count(p.log.Bytes(), []byte("\n"))).To(Equal(1), p.log.String())
		Expect(p.log.String()).To(And(ContainSubstring("not found"), ContainSubstring("pod="+name), ContainSubstring("herald_clock_skew_seconds")))

		Expect(admin.Create(ctx, podOf(name))).To(Succeed())
		p.report(ctx)
		got, _ := conditionOf(ctx, name)
		Expect(got.Status).To(Equal(corev1.ConditionTrue), "it goes on trying")

		Expect(admin.Delete(ctx, podOf(name), client.GracePeriodSeconds(0))).To(Succeed())
		p.state.Correction = time.Minute
		p.report(ctx)
		Expect(bytes.Count(p.log.Bytes(), []byte("\n"))).To(Equal(2), p.log.String())
	})

	It("says that the rights may be missing", func(ctx SpecContext) {
		p := start("neighbour")
		p.Pods = podsBy("herald-manager-3")
		p.report(ctx)
		Expect(p.log.String()).To(And(ContainSubstring("herald-own-pod"), ContainSubstring("config/rbac")))
		got, _ := conditionOf(ctx, "neighbour")
		Expect(got).To(BeZero())
	})

	It("says nothing when it ends", func(ctx SpecContext) {
		p := start("herald-manager-4")
		ended, end := context.WithCancel(ctx)
		end()
		p.report(ended)
		Expect(p.log.String()).To(BeEmpty())
	})
})
