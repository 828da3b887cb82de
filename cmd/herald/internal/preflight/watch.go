// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// checkInterval is how often a Watch checks the CRDs for changes.
const checkInterval = 15 * time.Second

// onlyMetadata is the Accept header for an object without its content.
const onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// Watch checks the CRDs while a process runs. Older CRDs, for example after another release was rolled back, drop data
// that this program records.
type Watch struct {
	Config      *rest.Config
	Definitions fs.FS
	Clock       clock.Clock
	Log         *slog.Logger
}

// Start checks until ctx is done. It returns an error once a served CRD is older than this program, so that the process
// exits and reports the error on every start until it is fixed. It ignores all other problems.
func (w *Watch) Start(ctx context.Context) error {
	client, err := connect(w.Config)
	if err != nil {
		return err
	}
	names, err := w.names()
	if err != nil {
		return err
	}
	known := ""
	for {
		versions := make([]string, len(names))
		for i, name := range names {
			versions[i] = resourceVersion(ctx, client.RESTClient(), name)
		}
		// An empty version is one that could not be read.
		if now := strings.Join(versions, " "); now != known {
			err := w.compare(ctx, client)
			switch {
			case errors.Is(err, ErrOlder):
				return err
			case err == nil:
				known = now
			case ctx.Err() == nil:
				w.Log.DebugContext(ctx, "The resource definitions cannot be compared now", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Clock.After(checkInterval):
		}
	}
}

// compare reads this program's CRDs for each comparison instead of keeping them, because they are large and rarely
// needed.
func (w *Watch) compare(ctx context.Context, client *discovery.DiscoveryClient) error {
	wanted, err := read(w.Definitions)
	if err != nil {
		return err
	}
	return compare(ctx, client, wanted)
}

// names returns the names of the CRDs. It does not keep the CRDs, because they are large.
func (w *Watch) names() (names []string, err error) {
	definitions, err := read(w.Definitions)
	for _, definition := range definitions {
		names = append(names, definition.Name)
	}
	return names, err
}

// NeedLeaderElection returns false: every replica checks.
func (w *Watch) NeedLeaderElection() bool { return false }

func resourceVersion(ctx context.Context, client rest.Interface, name string) string {
	data, err := client.Get().AbsPath(definitionsPath, name).SetHeader("Accept", onlyMetadata).DoRaw(ctx)
	var object metav1.PartialObjectMetadata
	if err != nil || json.Unmarshal(data, &object) != nil {
		return ""
	}
	return object.ResourceVersion
}
