// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tcpListen is the state of a listening socket in /proc/net/tcp.
const tcpListen = "0A"

// PortOwner describes the process that listens on a port, or returns "" when that cannot be told, as for processes of
// other users.
func PortOwner(port int) string {
	inodes := append(listeners("/proc/net/tcp", port), listeners("/proc/net/tcp6", port)...)
	if len(inodes) == 0 {
		return ""
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		inode, ok := strings.CutPrefix(target, "socket:[")
		if !ok || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		pid := strings.Split(link, "/")[2]
		cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil {
			continue
		}
		return fmt.Sprintf("process %s: %s", pid, shorten(strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))))
	}
	return ""
}

// listeners returns the inodes of the sockets that listen on the port, according to a file such as /proc/net/tcp.
func listeners(table string, port int) []string {
	file, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	var inodes []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != tcpListen {
			continue
		}
		_, hexPort, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseUint(hexPort, 16, 16); err == nil && int(n) == port {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}
