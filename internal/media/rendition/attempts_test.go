// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

const begunKey = "team/3d4b2c1a-0000-4000-8000-000000000002.rendition"

// marks counts the markers in the store.
func marks(files *memory) (count int) {
	files.mu.Lock()
	defer files.mu.Unlock()
	for key := range files.files {
		if strings.HasSuffix(key, "begun") {
			count++
		}
	}
	return count
}

// A file that exhausts a resource would do so every time, so every process rejects it from then on.
func TestExhaustionIsPermanent(t *testing.T) {
	for resource, says := range map[rendition.Resource]string{
		rendition.ResourceTime: "20 seconds", rendition.ResourceMemory: "memory", rendition.ResourceCrash: "crashes",
	} {
		files, started := newMemory(), 0
		create := func() (rendition.Output, error) {
			started++
			return rendition.Output{}, &rendition.ExhaustedError{Of: resource}
		}
		for range 3 {
			_, err := rendition.NewCache(files, rendition.NewSlots(1)).GetOrCreate(t.Context(), begunKey, create)
			if exhausted := new(rendition.ExhaustedError); !errors.As(err, &exhausted) || exhausted.Of != resource || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", resource, err)
			}
		}
		if started != 1 {
			t.Errorf("%s: started %d times", resource, started)
		}
	}
}

// A failure that has nothing to do with the file leaves no marker.
func TestFailureIsRetried(t *testing.T) {
	files := newMemory()
	shelf := rendition.NewCache(files, rendition.NewSlots(1))
	for name, failure := range map[string]error{
		"the store is down": errors.New("the store is down"), "a problem of the file": &rendition.ConversionError{Message: "is damaged"}, "an end": context.Canceled,
	} {
		for range 5 {
			if _, err := shelf.GetOrCreate(t.Context(), begunKey, func() (rendition.Output, error) { return rendition.Output{}, failure }); !errors.Is(err, failure) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := shelf.GetOrCreate(t.Context(), begunKey, made); err != nil || marks(files) != 0 {
		t.Errorf("%v, and %d marks remain", err, marks(files))
	}
}

// If a file uses most of its time on a busy machine, or its process is killed for lack of memory, it is rejected only
// after several attempts, because another process may be the cause.
func TestAmbiguousFailureIsRetriedThreeTimes(t *testing.T) {
	for name, failure := range map[string]error{"slow": rendition.ErrSlow, "killed": fmt.Errorf("memory was short: %w", rendition.ErrKilled)} {
		files, started := newMemory(), 0
		shelf := rendition.NewCache(files, rendition.NewSlots(1))
		var err error
		for range 5 {
			_, err = shelf.GetOrCreate(t.Context(), begunKey, func() (rendition.Output, error) {
				started++
				return rendition.Output{}, failure
			})
		}
		if exhausted := new(rendition.ExhaustedError); started != 3 || !errors.As(err, &exhausted) || exhausted.Of != rendition.ResourceTries {
			t.Errorf("%s: started %d times: %v", name, started, err)
		}
	}
}

// Caches with the same slots take turns, because they share memory.
func TestCachesShareSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, files := rendition.NewSlots(1), newMemory()
		images, videos := rendition.NewCache(files, turns), rendition.NewCache(files, turns)
		first, working, second := make(chan struct{}), make(chan struct{}), false
		go func() {
			_, _ = images.GetOrCreate(t.Context(), begunKey, func() (rendition.Output, error) { close(working); <-first; return made() })
		}()
		<-working
		go func() {
			_, _ = videos.GetOrCreate(t.Context(), "other/3d4b2c1a-0000-4000-8000-000000000002.frame", func() (rendition.Output, error) { second = true; return made() })
		}()
		synctest.Wait()
		if second {
			t.Error("both jobs run concurrently")
		}
		close(first)
		synctest.Wait()
		if !second {
			t.Error("the second never had its turn")
		}
	})
}

func made() (rendition.Output, error) {
	return rendition.Output{Data: []byte("picture"), MIMEType: jpegType, Width: 1, Height: 1}, nil
}

// undeletable is a store that neither accepts nor removes anything while it is down.
type undeletable struct {
	*memory

	down bool
}

func (u *undeletable) Delete(ctx context.Context, key string) error {
	if u.down {
		return errors.New("the store is down")
	}
	return u.memory.Delete(ctx, key)
}

// If the store fails during the work, even repeatedly, the file is not rejected.
func TestStoreOutageDoesNotRejectTheFile(t *testing.T) {
	files := &undeletable{memory: newMemory()}
	shelf := rendition.NewCache(files, rendition.NewSlots(1))
	for range 5 {
		files.down = true
		if _, err := shelf.GetOrCreate(t.Context(), begunKey, func() (rendition.Output, error) { return rendition.Output{}, errors.New("the store is down") }); err == nil {
			t.Fatal("the rendition was created again")
		}
	}
	files.down = false
	if _, err := shelf.GetOrCreate(t.Context(), begunKey, made); err != nil || marks(files.memory) != 0 {
		t.Errorf("%v, and %d marks remain", err, marks(files.memory))
	}
}

// aStore is the environment variable that holds the store for the process that is killed.
const aStore = "HERALD_TEST_STORE"

// begin is the main function of that process: it starts work, reports that, and never finishes.
func begin(config string) {
	var c store.Config
	err := json.Unmarshal([]byte(config), &c) //nolint:musttag // it goes to this program only
	files, failure := store.New(c)
	if err = errors.Join(err, failure); err == nil {
		_, err = rendition.NewCache(files, rendition.NewSlots(1)).GetOrCreate(context.Background(), begunKey, func() (rendition.Output, error) {
			_, _ = os.Stdout.WriteString("begun\n")
			_, _ = io.Copy(io.Discard, os.Stdin) // It never ends.
			return rendition.Output{}, errors.New("the process was not killed")
		})
	}
	_, _ = os.Stdout.WriteString(err.Error() + "\n")
}

// A file that takes down the manager is tried three times in total, regardless of the process.
func TestAbandonedAfterThreeStarts(t *testing.T) {
	config := storetest.Start(t)
	data, err := json.Marshal(config) //nolint:musttag // it goes to this program only
	must.Succeed(t, err)
	files, err := store.New(config)
	must.Succeed(t, err)
	for range 3 {
		if output := kill(t, string(data)); output != "begun\n" {
			t.Fatalf("the process printed %q", output)
		}
	}
	if said := kill(t, string(data)); !strings.Contains(said, "3 attempts") {
		t.Errorf("the fourth process printed %q", said)
	}
	if _, err := rendition.NewCache(files, rendition.NewSlots(1)).GetOrCreate(t.Context(), "team/other.rendition", made); err != nil {
		t.Errorf("another file: %v", err)
	}
}

// kill starts a process that starts work, kills it, and returns its output.
func kill(t *testing.T, config string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), aStore+"="+config)
	in, err := cmd.StdinPipe()
	must.Succeed(t, err)
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	output, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Errorf("no output: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = in.Close()
	return output
}
