// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publicaddr

import (
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	for address, tc := range map[string]struct {
		public bool
		reason string
	}{
		"1.1.1.1":                  {true, "a public server"},
		"172.15.255.255":           {true, "just below a private block"},
		"172.32.0.0":               {true, "just above it"},
		"100.63.255.255":           {true, "just below the shared block"},
		"100.128.0.0":              {true, "just above it"},
		"168.63.129.15":            {true, "next to Azure's virtual address"},
		"223.255.255.255":          {true, "just below multicast"},
		"2606:4700::1111":          {true, "a public server by IPv6"},
		"::ffff:1.1.1.1":           {true, "a public server, mapped"},
		"64:ff9b::1.1.1.1":         {true, "a public server, translated for a host without IPv4"},
		"0.0.0.0":                  {false, "this host"},
		"10.96.0.1":                {false, "a cluster's API server"},
		"100.64.0.1":               {false, "shared by carriers"},
		"100.100.100.200":          {false, "Alibaba's metadata"},
		"127.0.0.1":                {false, "loopback"},
		"127.255.255.254":          {false, "loopback includes the whole /8 block"},
		"168.63.129.16":            {false, "Azure's host"},
		"169.254.169.254":          {false, "the metadata service"},
		"169.254.170.2":            {false, "credentials of containers"},
		"172.16.0.1":               {false, "private"},
		"172.31.255.255":           {false, "private to its end"},
		"192.0.0.192":              {false, "Oracle's metadata"},
		"192.0.2.1":                {false, "documentation"},
		"192.88.99.1":              {false, "a 6to4 relay"},
		"192.168.1.1":              {false, "private"},
		"198.19.255.255":           {false, "benchmarks"},
		"203.0.113.9":              {false, "documentation"},
		"224.0.0.1":                {false, "multicast"},
		"239.255.255.250":          {false, "multicast"},
		"240.0.0.1":                {false, "reserved"},
		"255.255.255.255":          {false, "broadcast"},
		"::":                       {false, "the unspecified address"},
		"::1":                      {false, "loopback"},
		"::127.0.0.1":              {false, "loopback in an obsolete form"},
		"::ffff:10.0.0.1":          {false, "private, mapped"},
		"::ffff:169.254.169.254":   {false, "the metadata service, mapped"},
		"64:ff9b::169.254.169.254": {false, "the metadata service, translated"},
		"64:ff9b:1::a00:1":         {false, "translation inside one network"},
		"100::1":                   {false, "discarded"},
		"2001::1":                  {false, "Teredo tunnels to an IPv4 address"},
		"2001:db8::1":              {false, "documentation"},
		"2002:a00:1::":             {false, "6to4 tunnels to 10.0.0.1"},
		"3fff::1":                  {false, "documentation"},
		"fc00::1":                  {false, "private"},
		"fd00:ec2::254":            {false, "Amazon's metadata"},
		"fe80::1":                  {false, "link-local"},
		"fe80::1%eth0":             {false, "link-local, with its zone"},
		"fec0::1":                  {false, "site-local, out of use"},
		"ff02::1":                  {false, "multicast"},
		"2606:4700::1111%eth0":     {false, "a zone has no place on the internet"},
	} {
		t.Run(address, func(t *testing.T) {
			if got := Check(netip.MustParseAddr(address)) == nil; got != tc.public {
				t.Errorf("%s: public is %v", tc.reason, got)
			}
		})
	}
	if Check(netip.Addr{}) == nil {
		t.Error("no address is not a public one")
	}
}
