// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image builds the container images without a container engine and without root. `make image` builds the
// programs and runs it; docs/images.md describes the output.
//
// Its commands:
//
//	pack       writes OCI archives, and an SBOM for each image
//	unpack     writes the files of one image to a folder, for the Dockerfile
//	packages   pins the current Debian packages
//	licences   writes docs/licences.md
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Exit codes, as in herald: a usage error has a different code.
const (
	exitFailure = 1
	exitUsage   = 2
)

const usage = "Usage: image pack|unpack|packages|licences [flags]\n\n`image COMMAND --help` lists the flags of a command.\n"

// options are the parsed flags.
type options struct {
	packer        packer
	images        []definition
	architectures []string
	out           string
}

func main() {
	os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr))
}

// dispatch runs a command and returns the exit code.
func dispatch(args []string, stdout, stderr io.Writer) int {
	commands := map[string]func(options, io.Writer) error{"pack": pack, "unpack": unpack, "packages": packages, "licences": writeLicences}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	parsed, err := parse(args[0], args[1:], stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "image %s: %v\nSee `image %s --help`.\n", args[0], err, args[0])
		return exitUsage
	}
	if err := commands[args[0]](parsed, stdout); err != nil {
		fmt.Fprintf(stderr, "image %s: %v\n", args[0], err)
		return exitFailure
	}
	return 0
}

// parse parses a command's flags. It writes the usage to help.
func parse(command string, args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("image "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	images := flags.String("images", strings.Join(names(), ","), "images to make")
	architectures := flags.String("architectures", "amd64,arm64", "architectures to make them for")
	flags.StringVar(&o.out, "out", "", "folder to write to (required)")
	flags.StringVar(&o.packer.programs, "programs", "", "folder with the Go programs in linux_<architecture>")
	flags.StringVar(&o.packer.cache, "cache", "", "folder that keeps Debian packages (required)")
	flags.StringVar(&o.packer.registry, "registry", "ghcr.io/herald-social", "where the images are at home")
	flags.StringVar(&o.packer.release.version, "version", "", "version, which is the tag too")
	flags.StringVar(&o.packer.release.revision, "revision", "", "commit")
	created := flags.Int64("created", 0, "time that the images bear, in seconds of Unix time")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.out == "" || o.packer.cache == "" && command != "licences" {
		return o, errors.New("--out and --cache are required")
	}
	if (command == "pack" || command == "unpack") && (o.packer.programs == "" || o.packer.release.version == "") {
		return o, errors.New("--programs and --version are required")
	}
	o.packer.release.created = time.Unix(*created, 0).UTC()
	o.architectures = list(*architectures)
	for _, name := range list(*images) {
		at := slices.IndexFunc(definitions, func(d definition) bool { return d.name == name })
		if at < 0 {
			return o, fmt.Errorf("there is no image %q; there are %s", name, strings.Join(names(), ", "))
		}
		o.images = append(o.images, definitions[at])
	}
	return o, nil
}

// list splits names at commas and spaces.
func list(names string) []string {
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
}

// names returns the images that are built by default.
func names() []string {
	var names []string
	for _, d := range definitions {
		if !d.test {
			names = append(names, d.name)
		}
	}
	return names
}

// pack writes the archives and prints their digests to stdout.
func pack(o options, stdout io.Writer) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, d := range o.images {
		digest, err := o.packer.pack(d, o.architectures, o.out)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		file := filepath.Join(o.out, d.name+".tar")
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s/%s:%s@%s (%s, %.1f MB)\n", o.packer.registry, d.name, o.packer.release.version, digest, file, float64(info.Size())/1e6)
	}
	return nil
}

// unpack writes the files of one image for one architecture.
func unpack(o options, _ io.Writer) error {
	if len(o.images) != 1 || len(o.architectures) != 1 {
		return errors.New("name one of --images and one of --architectures")
	}
	return o.packer.unpack(o.images[0], o.architectures[0], o.out)
}

// packages writes the lock files.
func packages(o options, _ io.Writer) error {
	return pinFFmpeg(o.out, o.packer.cache, o.architectures, time.Now())
}
