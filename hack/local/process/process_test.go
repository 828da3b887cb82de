// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parentVariable makes the test binary play a parent: it starts a child, says its pid and waits to be killed.
const parentVariable = "HERALD_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		playParent()
	}
	os.Exit(m.Run())
}

func playParent() {
	child := exec.Command("sleep", "1000")
	if err := NewSpawner().Start(child); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(child.Process.Pid)
	select {}
}

func TestChildrenDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent; elsewhere the next run does")
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent said %q", line)
	}
	if commandLine, err := CommandLine(child); err != nil || strings.Join(commandLine, " ") != "sleep 1000" {
		t.Fatalf("the child's command line is %q, %v", commandLine, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for Running(child) {
		select {
		case <-deadline:
			t.Fatal("the child outlived its killed parent")
		case <-tick.C:
		}
	}
}

func TestSignalGroupRefusesWhatIsNoChild(t *testing.T) {
	for _, leader := range []int{-1, 0, 1} {
		if SignalGroup(leader, 0) == nil {
			t.Errorf("the group of %d was signalled: kill takes these numbers for this group, or for everybody", leader)
		}
	}
}

func TestNameAndCommandLineOfThisProcess(t *testing.T) {
	if Name(os.Getpid()) == "" || !Running(os.Getpid()) {
		t.Error("this process is not seen")
	}
	commandLine, err := CommandLine(os.Getpid())
	if err != nil || len(commandLine) == 0 || commandLine[0] != os.Args[0] {
		t.Errorf("the command line is %q, %v, want one that begins with %q", commandLine, err, os.Args[0])
	}
}
