// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// stages returns the instructions of each stage of a Dockerfile, including those of its base stage.
func stages(t *testing.T, text string) map[string][]string {
	t.Helper()
	all, current := map[string][]string{}, ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case fields[0] == "FROM":
			current = fields[len(fields)-1]
			all[current] = append([]string{}, all[fields[len(fields)-3]]...)
		case current != "":
			all[current] = append(all[current], strings.Join(fields, " "))
		}
	}
	return all
}

var label = regexp.MustCompile(`(\S+?)="([^"]*)"`)

// declared returns the image configuration that a Dockerfile's instructions produce.
func declared(t *testing.T, instructions []string) v1.Config {
	t.Helper()
	config := v1.Config{Labels: map[string]string{}}
	for _, instruction := range instructions {
		word, rest, _ := strings.Cut(instruction, " ")
		switch word {
		case "USER":
			config.User = rest
		case "ENV":
			config.Env = append(config.Env, rest)
		case "EXPOSE":
			config.ExposedPorts = map[string]struct{}{rest: {}}
		case "LABEL":
			for _, pair := range label.FindAllStringSubmatch(rest, -1) {
				config.Labels[pair[1]] = pair[2]
			}
		case "ENTRYPOINT", "CMD":
			var words []string
			if err := json.Unmarshal([]byte(rest), &words); err != nil {
				t.Errorf("%s: not in exec form: %v", instruction, err)
			}
			if word == "CMD" {
				config.Cmd = words
			} else {
				config.Entrypoint = words
			}
		}
	}
	return config
}

func TestDockerfileMatchesImages(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	found := stages(t, string(text))
	for _, d := range definitions {
		if d.test {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			have := declared(t, found[d.name])
			want := d.config(stamp)
			// Values that depend on the build come from build arguments.
			want.Labels["org.opencontainers.image.version"] = "$VERSION"
			want.Labels["org.opencontainers.image.revision"] = "$REVISION"
			want.Labels["org.opencontainers.image.created"] = "$CREATED"
			compare(t, "the stage", have, want)
			files := strings.Join(found[d.name+"-files"], "\n")
			if !strings.Contains(files, "make image-files IMAGES="+d.name+" OUT=/files") {
				t.Errorf("the stage %s-files lacks a file or permission of the image:\n%s", d.name, files)
			}
			if !strings.Contains(strings.Join(found[d.name], "\n"), "COPY --from="+d.name+"-files /files /") {
				t.Error("the stage does not copy the image's files")
			}
		})
	}
}

// TestUnpack compares the unpacked files, which the Dockerfile copies, with the files in the archives.
func TestUnpack(t *testing.T) {
	p := packer{release: stamp, registry: "registry.example.com/herald", programs: programs(t), cache: t.TempDir()}
	for _, d := range definitions {
		if d.ffmpeg {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			out := t.TempDir()
			if _, err := p.pack(d, []string{"amd64"}, out); err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			if err := p.unpack(d, "amd64", root); err != nil {
				t.Fatal(err)
			}
			for name, file := range entries(t, open(t, out+"/"+d.name+".tar").images["linux/amd64"]) {
				info, err := os.Stat(root + name)
				if err != nil {
					t.Fatal(err)
				}
				mode := int64(info.Mode().Perm())
				if info.Mode()&os.ModeSticky != 0 {
					mode |= 0o1000
				}
				if mode != file.header.Mode || info.IsDir() != (file.header.Typeflag == tar.TypeDir) {
					t.Errorf("%s has mode %s, the archive %o", name, info.Mode(), file.header.Mode)
				}
				if info.IsDir() {
					continue
				}
				content, err := os.ReadFile(root + name)
				if err != nil || !bytes.Equal(content, file.content) {
					t.Errorf("%s differs from the archive: %v", name, err)
				}
			}
		})
	}
}

// TestToolchain checks that go.mod, the modules whose programs are in images, and the Dockerfile pin the same patch
// version of Go, regardless of the build machine's version. The Dockerfile also pins the image's digest, since a tag
// can move.
func TestToolchain(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for file, pattern := range map[string]string{
		"../../go.mod": `(?m)^toolchain go(\S+)$`, "go.mod": `(?m)^toolchain go(\S+)$`, "../store/go.mod": `(?m)^toolchain go(\S+)$`,
		"../../Dockerfile": `golang:(\d+\.\d+\.\d+)-trixie@sha256:[0-9a-f]{64} `,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(text)
		if match == nil {
			t.Errorf("%s does not pin a version of Go: no match for %s", file, pattern)
			continue
		}
		found[string(match[1])] = file
	}
	if len(found) > 1 {
		t.Errorf("the Go versions differ: %v", found)
	}
}
