// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// packaged writes the chart of a checkout as an archive into a folder and returns the archive's name. version is the
// version of the images from the same build, such as v0.2.0 or v0.2.0-5-g1a2b3c4, and becomes the chart's default tag.
// The annotations describe the release to Artifact Hub: https://artifacthub.io/docs/topics/annotations/helm/
func packaged(checkout, version, folder string) (string, error) {
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil || !strings.HasPrefix(version, "v") {
		return "", fmt.Errorf("the version %q is not v and a semantic version: %w", version, err)
	}
	c, err := loader.Load(filepath.Join(checkout, "charts", "herald"))
	if err != nil {
		return "", err
	}
	c.Metadata.Version, c.Metadata.AppVersion = parsed.String(), version
	if err := annotate(c.Metadata.Annotations, checkout, parsed, imagesOf(c, version)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	return chartutil.Save(c, folder)
}

// installer renders config/default of a checkout with the images of a version. The image names are the chart's
// defaults.
func installer(checkout, version string) (string, error) {
	c, err := loader.Load(filepath.Join(checkout, "charts", "herald"))
	if err != nil {
		return "", err
	}
	text, err := renderFolder(filepath.Join(checkout, "config", "default"))
	if err != nil {
		return "", err
	}
	tag := regexp.MustCompile(`(?m)^( *app\.kubernetes\.io/version: | *(?:- )?image: \S+:)` + regexp.QuoteMeta(c.AppVersion()) + "$")
	return tag.ReplaceAllString(text, "${1}"+version), nil
}

// image is an entry of artifacthub.io/images.
type image struct {
	Name      string   `yaml:"name"`
	Image     string   `yaml:"image"`
	Platforms []string `yaml:"platforms,flow"`
}

// imagesOf returns all images that the chart can run. They are in one registry.
func imagesOf(c *chart.Chart, tag string) (out []image) {
	values, err := chartutil.Values(c.Values).Table("image")
	if err != nil {
		return nil
	}
	for _, ending := range []string{"", "-ffmpeg", "-sandbox", "-store"} {
		out = append(out, image{
			Name: c.Name() + ending, Image: fmt.Sprintf("%v%s:%s", values["repository"], ending, tag), Platforms: []string{"linux/amd64", "linux/arm64"},
		})
	}
	return out
}

func annotate(annotations map[string]string, checkout string, version *semver.Version, images []image) error {
	changelog, err := os.ReadFile(filepath.Join(checkout, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	changes, err := changesIn(string(changelog), version.String())
	if err != nil {
		return err
	}
	examples, err := examplesIn(filepath.Join(checkout, "config", "samples"))
	if err != nil {
		return err
	}
	security := false
	for _, c := range changes {
		security = security || c.Kind == "security"
	}
	annotations["artifacthub.io/containsSecurityUpdates"] = strconv.FormatBool(security)
	annotations["artifacthub.io/prerelease"] = strconv.FormatBool(version.Prerelease() != "")
	for name, content := range map[string]any{"changes": changes, "images": images, "crdsExamples": examples} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		annotations["artifacthub.io/"+name] = string(text)
	}
	return nil
}

// examplesIn returns the objects of Herald's kinds in the samples folder.
func examplesIn(folder string) (out []map[string]any, err error) {
	tree := os.DirFS(folder)
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var object map[string]any
			err := documents.Decode(&object)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if group, _ := object["apiVersion"].(string); strings.HasPrefix(group, "social.herald.dev/") {
				out = append(out, object)
			}
		}
	})
	return out, err
}
