// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"unicode/utf8"
)

// DefaultSitePort is the port of the site unless HERALD_PORT says otherwise.
const DefaultSitePort = 8080

// SitePort reads the value of HERALD_PORT.
func SitePort(value string) (int, error) {
	if value == "" {
		return DefaultSitePort, nil
	}
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("HERALD_PORT=%s: want a port number between 1 and 65535", value)
	}
	return port, nil
}

// CheckSitePort fails with a message for people when the site could not listen on the port.
func CheckSitePort(port int) error {
	listener, err := net.Listen("tcp", Address(port))
	if err == nil {
		return listener.Close()
	}
	choose := fmt.Sprintf("choose another port for the site: HERALD_PORT=%d make run", suggestPort(port))
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen on port %d: %w\n%s", port, err, choose)
	}
	owner := PortOwner(port)
	if owner == "" {
		owner = "another process"
	}
	return fmt.Errorf("port %d is taken by %s\nstop it, or %s", port, owner, choose)
}

// suggestPort finds a free port that is easy to type.
func suggestPort(taken int) int {
	for port := DefaultSitePort; port < DefaultSitePort+1000; port++ {
		if port != taken && IsFree(port) {
			return port
		}
	}
	return DefaultSitePort
}

// shorten keeps a command line on one line of a terminal.
func shorten(text string) string {
	const most = 100
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
