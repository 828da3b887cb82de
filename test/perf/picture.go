// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
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
	// pictureBytes is the size of every picture.
	pictureBytes = 200 << 10
	// picturesPerTeam is how many different ones a team has.
	picturesPerTeam = 4
	// pictureSide is the width and the height of a picture, in pixels: 1080 is what people post, and large areas of it are
	// plain.
	pictureSide = 1080
	// mosaic is the side of a square of one colour, in pixels.
	mosaic = 12
)

// picture is a file of a team.
type picture struct {
	name string
	// address is where it can be read.
	address string
}

// pictures makes the pictures of teams and has the manager verify them. Herald must be started.
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
			p := picture{name: fmt.Sprintf("picture-%d", i)}
			if p.address, err = s.keepPicture(ctx, store, team.Namespace, p.name, content); err != nil {
				return nil, err
			}
			made[team.Namespace] = append(made[team.Namespace], p)
		}
	}
	return made, nil
}

// keepPicture makes a picture's Media, unless an earlier benchmark has, and returns where it can be read.
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

// show makes a post one of a picture.
func show(post *v1alpha1.Post, picture string) {
	post.Spec.Category = v1alpha1.CategoryImage
	post.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.LocalReference{{Name: picture}}}
}

// drawn is a JPEG.
type drawn []byte

func (d drawn) size() int64     { return int64(len(d)) }
func (d drawn) read() io.Reader { return bytes.NewReader(d) }

// drawPicture draws a JPEG of pictureBytes bytes, different for each number.
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
	if err := jpeg.Encode(&out, canvas, &jpeg.Options{Quality: 60}); err != nil {
		return nil, err
	}
	return padded(out.Bytes(), pictureBytes)
}

// padded makes a JPEG larger by comments behind its first two bytes.
func padded(content []byte, size int) (drawn, error) {
	const marker, most = 4, 1<<16 - 3
	fill := size - len(content)
	if fill < 0 {
		return nil, fmt.Errorf("a picture has %d bytes, which is more than %d", len(content), size)
	}
	head := bytes.Clone(content[:2])
	for fill > 0 {
		part := min(fill, most+2)
		if left := fill - part; left > 0 && left < marker {
			part -= marker
		}
		if part < marker {
			return nil, fmt.Errorf("a picture cannot be made longer by %d bytes", fill)
		}
		head = append(head, 0xff, 0xfe)
		head = binary.BigEndian.AppendUint16(head, uint16(part-2))
		head = append(head, bytes.Repeat([]byte{'.'}, part-marker)...)
		fill -= part
	}
	return append(head, content[2:]...), nil
}
