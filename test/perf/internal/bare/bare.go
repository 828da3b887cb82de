// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bare contains the programs that Herald is compared with, and the one that generates load for Herald. Each
// runs in its own process, so it shares neither a garbage collector nor a scheduler with the other side. Its parent
// sends a Config, waits until the program is warm, starts the measurement, and reads the result:
//
//	create   creates posts with client-go
//	answer   watches posts and writes the status of each once, with client-go
//	deliver  for each post writes its status, makes the platform calls, and writes its status again
//	ask      sends requests to Herald's REST API, or to plain, and measures their latency
//	plain    serves HTTP: returns a constant response for every GET
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

// The names of the programs.
const (
	Create  = "create"
	Answer  = "answer"
	Deliver = "deliver"
	Ask     = "ask"
	Plain   = "plain"
)

// Config configures a program. Each program reads only the fields that it needs.
type Config struct {
	// Kubeconfig is the path of the kubeconfig.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Processor pins the program to a CPU (see measure.OnProcessor); zero does not pin it. Start reads it.
	Processor int `json:"-"`
	// InFlight is the concurrency; Warm and Count are the numbers of operations before and during the measurement.
	InFlight int `json:"inFlight"`
	Warm     int `json:"warm"`
	Count    int `json:"count"`
	// Post is the template of create, which sets a new name for each post.
	Post *v1alpha1.Post `json:"post,omitempty"`
	// Statuses are the statuses that answer (one) and deliver (two: claimed, posted) write. They are samples of
	// statuses that Herald writes.
	Statuses []v1alpha1.PostStatus `json:"statuses,omitempty"`
	// Accounts are the accounts that deliver publishes to, by their connection's "namespace/name".
	Accounts map[string]Account `json:"accounts,omitempty"`
	// Files are the URLs of the posts' files for deliver, by "namespace/name". It uploads them before the measurement,
	// as Herald does for posts that are due later.
	Files map[string]string `json:"files,omitempty"`
	// Requests are the requests that ask sends, in order.
	Requests []Request `json:"requests,omitempty"`
	// Address is plain's listen address, and Reply the size of its response in bytes.
	Address string `json:"address,omitempty"`
	Reply   int    `json:"reply,omitempty"`
}

// Account is an account on X or Threads.
type Account struct {
	Platform v1alpha1.Platform `json:"platform"`
	// URL is the URL of the platform, and Token the token of the account.
	URL   string `json:"url"`
	ID    string `json:"id"`
	Token string `json:"token"`
}

// Result contains the measurements of a program.
type Result struct {
	// Start is the time at which the first of Count operations started, and End the time at which the last one ended.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// CPU is the program's CPU time between them.
	CPU time.Duration `json:"cpu"`
	// Latency is the result of ask; it is nil for the others.
	Latency *Latency `json:"latency,omitempty"`
}

// message is a message from a program to its parent: that it is warm, or its result.
type message struct {
	Warm   bool    `json:"warm,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// task is the work of a program.
type task interface {
	// warm prepares the program and runs Config.Warm operations.
	warm(ctx context.Context) error
	// run runs Config.Count operations.
	run(ctx context.Context) error
}

// Main runs a program: it reads the Config from the first line of in, writes to out when it is warm, and starts the
// measurement at the second line.
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
		return nil, fmt.Errorf("unknown bare program %q", name)
	}
}

// postsClient returns a client-go client for posts without a rate limit.
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

// each calls work count times, in inFlight workers, and passes the worker's number. It stops at the first error.
func each(ctx context.Context, inFlight, count int, work func(ctx context.Context, worker int) error) error {
	var started atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for worker := range inFlight {
		group.Go(func() error {
			for started.Add(1) <= int64(count) && ctx.Err() == nil {
				if err := work(ctx, worker); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// cpu returns this process's CPU time so far, or zero if the system does not report it.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
