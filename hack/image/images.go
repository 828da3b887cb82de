// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// user runs what is in an image. It is a number, as Kubernetes asks where it must see that a user is not root, and has no entry
// in any file.
const user = "65532:65532"

// definition says what an image is.
type definition struct {
	// name is that of the image, and of its target in the Dockerfile.
	name, title, description string
	// program is the file name of the Go program, which lies in the root folder and is the entry point.
	program string
	// arguments are given to the program if the container has none of its own.
	arguments []string
	// ports are those that the arguments open.
	ports []string
	// scratch are folders that everyone may write to. A pod with a read-only root mounts volumes there.
	scratch []string
	// ffmpeg says that the program is in it too.
	ffmpeg bool
	// licences is an SPDX expression.
	licences string
	// test is set if nobody but the tests uses it: it is made only when it is named, and not by the Dockerfile.
	test bool
}

// licence is Herald's own.
const licence = "Apache-2.0"

// definitions are all images. The Dockerfile says the same; a test compares the two.
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
		// Debian builds ffmpeg with parts under the GPL.
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

// release is what is stamped on every image of one build.
type release struct {
	version, revision string
	// created is the time of the commit: the time of the build would make each build another image.
	created time.Time
}

const repository = "https://github.com/herald-social/herald"

// labels are the annotations of the OCI image specification.
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

// config is how the image is run.
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
