// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net"

	"github.com/herald-social/herald/apiserver/limits"
)

// maxProbes limits connections to the probe port. The kubelet needs one at a time.
const maxProbes = 64

// newConnections limits connections to the API. Reaching a limit is logged at most once a minute per address.
func newConnections(config *Config) *limits.ConnectionPool {
	lines := limits.NewLogLimiter(config.Clock)
	return limits.NewConnectionPool(limits.ConnectionOptions{
		Total: config.MaxConnections, PerAddress: config.MaxConnectionsPerAddress, Idle: idleTimeout, Peer: config.Proxies.Peer, Clock: watchClock,
		Reached: func(bound limits.ConnectionBound, peer string) {
			write, leftOut := lines.Allow([2]string{string(bound), peer})
			if !write {
				return
			}
			attrs := []any{"address", peer, "notLogged", leftOut}
			switch bound {
			case limits.BoundPerAddress:
				config.Log.Warn("Connections from an address were closed: it has reached maxConnectionsPerAddress. If it is a proxy that sets X-Forwarded-For, add its network to trustedProxies; if it only forwards connections, raise maxConnectionsPerAddress or configure it to preserve client addresses (externalTrafficPolicy: Local)", attrs...)
			case limits.BoundTotal:
				config.Log.Warn("Connections were closed: maxConnections is reached", attrs...)
			case limits.BoundHeaders:
				config.Log.Warn("Connections were closed: too many have a long unfinished header", attrs...)
			}
		},
	})
}

func probeListener(from net.Listener) (net.Listener, *limits.ConnectionPool) {
	pool := limits.NewConnectionPool(limits.ConnectionOptions{Total: maxProbes, Idle: idleTimeout, Clock: watchClock})
	bounded := pool.Listener(from)
	return bounded, pool
}
