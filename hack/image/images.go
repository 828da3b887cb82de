// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// user is the user that the images run as. It is numeric, so Kubernetes can verify that it is not root, and has no
// entry in /etc/passwd.
const user = "65532:65532"

// definition defines an image.
type definition struct {
	// name is the name of the image and of its target in the Dockerfile.
	name, title, description string
	// program is the file name of the Go program in the root folder, which is the entrypoint.
	program string
	// arguments are the program's default arguments.
	arguments []string
	// ports are the ports that the program opens with these arguments.
	ports []string
	// scratch are world-writable folders. A pod with a read-only root file system mounts volumes there.
	scratch []string
	// ffmpeg adds ffmpeg to the image.
	ffmpeg bool
	// licences is an SPDX expression.
	licences string
	// test marks images that only tests use. They are built only on request, and not by the Dockerfile.
	test bool
}

// licence is Herald's own licence.
const licence = "Apache-2.0"

// definitions are all images. A test compares them with the Dockerfile.
var definitions = []definition{
	{
		name:        "herald",
		title:       "Herald",
		description: "Publishes one post to several social platforms, never twice and never lost",
		program:     "herald",
		licences:    licence,
	},
	{
		name:        "herald-ffmpeg",
		title:       "Herald with ffmpeg",
		description: "Herald, and the ffmpeg that takes thumbnails out of videos",
		program:     "herald",
		ffmpeg:      true,
		// Debian builds ffmpeg with parts that are under the GPL.
		licences: licence + " AND GPL-2.0-or-later",
	},
	{
		name:        "herald-sandbox",
		title:       "Herald's sandbox",
		description: "Simulated social platforms for trials of Herald",
		program:     "herald-sandbox",
		arguments:   []string{"--listen=:9100"},
		ports:       []string{"9100/tcp"},
		scratch:     []string{"/tmp"},
		licences:    licence,
	},
	{
		name:        "herald-store",
		title:       "Herald's store for trials",
		description: "An S3-compatible store for trials of Herald, the Versity gateway over one folder",
		program:     "herald-store",
		arguments:   []string{"--listen=:9000", "--allow-remote", "--data-dir=/data", "--credentials=/etc/herald-store/credentials.json"},
		ports:       []string{"9000/tcp"},
		scratch:     []string{"/data", "/tmp"},
		licences:    licence,
	},
	{
		name:        "herald-e2e-client",
		title:       "Client of Herald's end-to-end tests",
		description: "Posts by the REST API from a pod, in tests",
		program:     "herald-e2e-client",
		licences:    licence,
		test:        true,
	},
}

// release is the metadata that all images of a build share.
type release struct {
	version, revision string
	// created is the time of the commit. The build time would make every build produce a different image.
	created time.Time
}

const repository = "https://github.com/herald-social/herald"

// labels returns the annotations from the OCI image specification.
func (d definition) labels(r release) map[string]string {
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":         d.title,
		prefix + "description":   d.description,
		prefix + "vendor":        "The Herald Authors",
		prefix + "url":           repository,
		prefix + "source":        repository,
		prefix + "documentation": repository + "/blob/main/docs/images.md",
		prefix + "licenses":      d.licences,
		prefix + "version":       r.version,
		prefix + "created":       r.created.UTC().Format(time.RFC3339),
	}
	if r.revision != "" {
		labels[prefix+"revision"] = r.revision
	}
	return labels
}

// config returns the image's runtime configuration.
func (d definition) config(r release) v1.Config {
	config := v1.Config{
		User:       user,
		Entrypoint: []string{"/" + d.program},
		Cmd:        d.arguments,
		Labels:     maps.Clone(d.labels(r)),
	}
	if d.ffmpeg {
		config.Env = []string{"PATH=/usr/bin"}
	}
	for _, port := range d.ports {
		if config.ExposedPorts == nil {
			config.ExposedPorts = map[string]struct{}{}
		}
		config.ExposedPorts[port] = struct{}{}
	}
	return config
}
