// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math/rand/v2"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/perf/internal/stack"
)

const (
	// picturesPerTeam is how many different ones a team has.
	picturesPerTeam = 4
	// pictureSide is the width and the height of a picture, in pixels, as people post them.
	pictureSide = 1080
	// mosaic is the side of a square of one colour, in pixels. With this quality a picture has about 200 KiB.
	mosaic  = 12
	quality = 60
)

// picture is a file of a team.
type picture struct {
	name string
	// address is where it can be read.
	address string
	bytes   int64
}

// pictures uploads the pictures of teams and waits until the manager has verified them. Herald must be started.
func (s *session) pictures(ctx context.Context, teams []stack.Team) (map[string][]picture, error) {
	store, err := s.stack.Store()
	if err != nil {
		return nil, err
	}
	made := map[string][]picture{}
	for t, team := range teams {
		for i := range picturesPerTeam {
			content, err := drawPicture(uint64(t*picturesPerTeam + i))
			if err != nil {
				return nil, err
			}
			p := picture{name: fmt.Sprintf("picture-%d", i), bytes: content.size()}
			if p.address, err = s.keepPicture(ctx, store, team.Namespace, p.name, content); err != nil {
				return nil, err
			}
			made[team.Namespace] = append(made[team.Namespace], p)
		}
	}
	return made, nil
}

// keepPicture uploads a picture, unless an earlier benchmark has, and returns where it can be read.
func (s *session) keepPicture(ctx context.Context, files *store.Store, namespace, name string, content drawn) (string, error) {
	var media v1alpha1.Media
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := s.stack.Kubernetes.Get(ctx, key, &media); client.IgnoreNotFound(err) != nil {
		return "", err
	} else if err != nil {
		if _, _, err := s.apply(ctx, namespace, name, v1alpha1.MimeJPEG, content); err != nil {
			return "", err
		}
		if err := s.stack.Kubernetes.Get(ctx, key, &media); err != nil {
			return "", err
		}
	}
	return files.PresignGet(ctx, store.Key(&media), farAhead)
}

// show turns a post into a post of one picture.
func show(post *v1alpha1.Post, picture string) {
	post.Spec.Category = v1alpha1.CategoryImage
	post.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: picture}}}
}

// drawn is a JPEG.
type drawn []byte

func (d drawn) size() int64     { return int64(len(d)) }
func (d drawn) read() io.Reader { return bytes.NewReader(d) }

// drawPicture draws a JPEG of about 200 KiB, different for each number.
func drawPicture(number uint64) (drawn, error) {
	source := rand.New(rand.NewPCG(number, 1))
	canvas := image.NewRGBA(image.Rect(0, 0, pictureSide, pictureSide))
	for y := 0; y < pictureSide; y += mosaic {
		for x := 0; x < pictureSide; x += mosaic {
			c := color.RGBA{R: uint8(source.Uint32()), G: uint8(source.Uint32()), B: uint8(source.Uint32()), A: 0xff}
			for dy := range mosaic {
				for dx := range mosaic {
					canvas.SetRGBA(x+dx, y+dy, c)
				}
			}
		}
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, canvas, &jpeg.Options{Quality: quality})
	return out.Bytes(), err
}
