// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"os"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/workspace"
)

// choosePorts returns a free port other than avoid for every name. It reuses the ports stored in file if they are free,
// so addresses do not change from run to run.
func choosePorts(file string, names []string, avoid int) (map[string]int, error) {
	remembered, err := readPorts(file)
	if err != nil {
		return nil, err
	}
	used := map[int]bool{avoid: true}
	chosen := make(map[string]int, len(names))
	for _, name := range names {
		if port := remembered[name]; port != 0 && !used[port] && ports.IsFree(port) {
			chosen[name], used[port] = port, true
		}
	}
	next := startingPort(file)
	for _, name := range names {
		if chosen[name] != 0 {
			continue
		}
		if chosen[name], next, err = ports.From(next, used); err != nil {
			return nil, err
		}
	}
	data, err := json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		return nil, err
	}
	return chosen, workspace.WriteFile(file, append(data, '\n'), 0o600)
}

// readPorts reads the ports of an earlier run. It treats an invalid file as empty.
func readPorts(file string) (map[string]int, error) {
	found := map[string]int{}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	if damaged := json.Unmarshal(data, &found); damaged != nil {
		clear(found)
	}
	return found, nil
}

// startingPort returns a port that depends on the checkout, so two checkouts rarely choose the same ports.
func startingPort(file string) int {
	hash := fnv.New32a()
	hash.Write([]byte(file))
	return ports.Start(hash.Sum32())
}
