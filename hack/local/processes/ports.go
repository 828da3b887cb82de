// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"

	"github.com/herald-social/herald/hack/local/workspace"
)

// Ports are taken from below the ranges from which systems draw the ports of outgoing connections (Linux: 32768 up,
// macOS: 49152 up). A port from such a range can be lost while its process is being restarted: to any client, and even
// to a client that dials the port itself and is connected to its own end.
const (
	firstPort = 20000
	portCount = 10000
)

// Address is a loopback address.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// IsFree reports whether a server could listen on the loopback port now.
func IsFree(port int) bool {
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// choosePorts returns a free port for every name. What file remembers from earlier is kept as long as it is free, so
// that addresses stay the same from run to run; avoid is never chosen.
func choosePorts(file string, names []string, avoid int) (map[string]int, error) {
	remembered, err := readPorts(file)
	if err != nil {
		return nil, err
	}
	used := map[int]bool{avoid: true}
	chosen := make(map[string]int, len(names))
	for _, name := range names {
		if port := remembered[name]; port != 0 && !used[port] && IsFree(port) {
			chosen[name], used[port] = port, true
		}
	}
	next := startingPort(file)
	for _, name := range names {
		if chosen[name] != 0 {
			continue
		}
		if chosen[name], next, err = freeFrom(next, used); err != nil {
			return nil, err
		}
	}
	data, err := json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		return nil, err
	}
	return chosen, workspace.WriteFile(file, append(data, '\n'), 0o600)
}

// readPorts reads what an earlier run chose. A file that cannot be understood is as good as none.
func readPorts(file string) (map[string]int, error) {
	ports := map[string]int{}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return ports, nil
	}
	if err != nil {
		return nil, err
	}
	if damaged := json.Unmarshal(data, &ports); damaged != nil {
		clear(ports)
	}
	return ports, nil
}

// startingPort differs from checkout to checkout, so that two of them rarely want the same ports.
func startingPort(file string) int {
	hash := fnv.New32a()
	hash.Write([]byte(file))
	return firstPort + int(hash.Sum32()%portCount)
}

// freeFrom returns the first free port at or after start, going round once, and where to go on.
func freeFrom(start int, used map[int]bool) (port, next int, err error) {
	for i := range portCount {
		port := firstPort + (start-firstPort+i)%portCount
		if !used[port] && IsFree(port) {
			used[port] = true
			return port, port + 1, nil
		}
	}
	return 0, 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", firstPort, firstPort+portCount-1)
}
