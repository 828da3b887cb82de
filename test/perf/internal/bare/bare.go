// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bare holds the programs that Herald is measured against, and the one that puts load on Herald. Each runs as a
// process of its own, so that it shares neither garbage collector nor scheduler with the other side. A parent gives it a
// Config, waits until it is warm, lets it go, and reads what it measured:
//
//	create   creates posts by client-go
//	answer   watches posts and writes the status of each once, by client-go
//	deliver  for each post writes its status, makes the platform calls, and writes its status again
//	ask      sends requests to Herald's REST API, or to plain, and measures how long answers take
//	plain    serves HTTP: gives every GET the same answer
package bare

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Names of the programs.
const (
	Create  = "create"
	Answer  = "answer"
	Deliver = "deliver"
	Ask     = "ask"
	Plain   = "plain"
)

// Config tells a program what to do. Each reads only what it needs.
type Config struct {
	// Kubeconfig is the way to the Kubernetes API.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Processor is the only one that the program runs on (see measure.OnProcessor); zero for any. Start reads it.
	Processor int `json:"-"`
	// InFlight is how many are worked on at once; Warm is how many come before the clock runs, Count how many after.
	InFlight int `json:"inFlight"`
	Warm     int `json:"warm"`
	Count    int `json:"count"`
	// Post is what create creates, each time under another name.
	Post *v1alpha1.Post `json:"post,omitempty"`
	// Statuses are what answer (one) and deliver (two: claimed, posted) write. They are samples of what Herald writes.
	Statuses []v1alpha1.PostStatus `json:"statuses,omitempty"`
	// Accounts are where deliver publishes: what each connection leads to, by "namespace/name".
	Accounts map[string]Account `json:"accounts,omitempty"`
	// Files are the addresses from which deliver reads the files of posts, by "namespace/name". It uploads them before the
	// clock runs, as Herald does for posts that are due later.
	Files map[string]string `json:"files,omitempty"`
	// Requests are what ask asks, in turn.
	Requests []Request `json:"requests,omitempty"`
	// Address is where plain serves, and Reply is how many bytes it answers.
	Address string `json:"address,omitempty"`
	Reply   int    `json:"reply,omitempty"`
}

// Account is an account of a platform: X or Threads.
type Account struct {
	Platform v1alpha1.Platform `json:"platform"`
	// URL is the platform's, and Token the account's.
	URL   string `json:"url"`
	ID    string `json:"id"`
	Token string `json:"token"`
}

// Result is what a program measured.
type Result struct {
	// Start and End are when the first of Count began and the last ended.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// CPU is the processor time that the program used in between.
	CPU time.Duration `json:"cpu"`
	// Latency is what ask measures; nil of others.
	Latency *Latency `json:"latency,omitempty"`
}

// message is what a program sends to its parent: that it is warm, or what it measured.
type message struct {
	Warm   bool    `json:"warm,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// task is a program at work.
type task interface {
	// warm gets ready and does as many as Config.Warm says.
	warm(ctx context.Context) error
	// run does Config.Count more.
	run(ctx context.Context) error
}

// Main runs a program: it reads its Config from the first line of in, says on out when it is warm, and runs when the
// second line comes.
func Main(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	var config Config
	if err := json.Unmarshal(line, &config); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	program, err := newTask(name, config)
	if err != nil {
		return err
	}
	if err := program.warm(ctx); err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(message{Warm: true}); err != nil {
		return err
	}
	if _, err := lines.ReadBytes('\n'); err != nil {
		return fmt.Errorf("wait for leave to begin: %w", err)
	}
	result := Result{Start: time.Now()}
	before := cpu()
	if err := program.run(ctx); err != nil {
		return err
	}
	result.End, result.CPU = time.Now(), cpu()-before
	if a, ok := program.(*ask); ok {
		result.Latency = a.latency()
	}
	return answers.Encode(message{Result: &result})
}

func newTask(name string, config Config) (task, error) {
	switch name {
	case Create:
		return newCreate(config)
	case Answer:
		return newAnswer(config)
	case Deliver:
		return newDeliver(config)
	case Ask:
		return newAsk(config)
	case Plain:
		return &plain{config: config}, nil
	default:
		return nil, fmt.Errorf("there is no bare program %q", name)
	}
}

// postsClient returns client-go's client for posts, without its rate limit.
func postsClient(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.QPS = -1
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// each calls work count times, inFlight at once, each with the number of the worker; the first error ends it.
func each(ctx context.Context, inFlight, count int, work func(ctx context.Context, worker int) error) error {
	var begun atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for worker := range inFlight {
		group.Go(func() error {
			for begun.Add(1) <= int64(count) && ctx.Err() == nil {
				if err := work(ctx, worker); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// cpu is the processor time that this process has used so far; zero when the system does not tell.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
