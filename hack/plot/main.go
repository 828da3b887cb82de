// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plot draws the results of B12 (`BENCH=B12 make bench`) for docs/growth.md: one SVG for each measure, with a
// line for each number of teams. Its arguments are the file with the results, bin/bench.json, and the folder for the
// plots.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// latency is the part of a latency that is drawn, in milliseconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// size is the result with one number of waiting posts and of teams.
type size struct {
	Posts     float64 `json:"posts"`
	Teams     int     `json:"teams"`
	Settled   float64 `json:"settled_per_s"`
	List      latency `json:"list_ms"`
	Create    latency `json:"create_ms"`
	Manager   float64 `json:"manager_mib"`
	APIServer float64 `json:"apiserver_mib"`
}

// figure is a plot of one measure.
type figure struct {
	file, unit string
	of         func(*size) float64
}

func figures() []figure {
	return []figure{
		{"growth-settled.svg", "posts settled per second", func(s *size) float64 { return s.Settled }},
		{"growth-list.svg", "first page of a list, p99 in ms", func(s *size) float64 { return s.List.P99 }},
		{"growth-create.svg", "new post, p50 in ms", func(s *size) float64 { return s.Create.P50 }},
		{"growth-manager.svg", "manager, resident MiB", func(s *size) float64 { return s.Manager }},
		{"growth-apiserver.svg", "apiserver, resident MiB", func(s *size) float64 { return s.APIServer }},
	}
}

// The lines differ in color and in shape, for readers who do not see colors.
var (
	colors = []color.RGBA{{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}, {R: 0xd6, G: 0x27, B: 0x28, A: 0xff}, {R: 0x2c, G: 0xa0, B: 0x2c, A: 0xff}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.BoxGlyph{}}
)

const width, height = 12 * vg.Centimeter, 8 * vg.Centimeter

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plot RESULTS.json FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(results, folder string) error {
	sizes, err := read(results)
	if err != nil {
		return err
	}
	for _, f := range figures() {
		p, err := f.draw(sizes)
		if err != nil {
			return fmt.Errorf("cannot draw %s: %w", f.file, err)
		}
		if err := p.Save(width, height, filepath.Join(folder, f.file)); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.file, err)
		}
	}
	return nil
}

// read returns the results of B12.
func read(path string) ([]size, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the results; run `BENCH=B12 make bench` first: %w", err)
	}
	var all struct {
		B12 []size `json:"B12"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("cannot read the results in %s: %w", path, err)
	}
	if len(all.B12) == 0 {
		return nil, errors.New(path + " has no results of B12; run `BENCH=B12 make bench`")
	}
	return all.B12, nil
}

func (f *figure) draw(sizes []size) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = f.unit, "waiting posts"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks(sizes))
	p.Legend.Top, p.Legend.Left, p.Legend.Padding, p.Legend.XOffs = true, true, vg.Millimeter, vg.Centimeter
	p.Add(plotter.NewGrid())
	for n, teams := range numbersOfTeams(sizes) {
		line, points, err := plotter.NewLinePoints(f.points(sizes, teams))
		if err != nil {
			return nil, err
		}
		look := n % len(colors)
		line.Color, points.Color, points.Shape = colors[look], colors[look], shapes[look]
		p.Add(line, points)
		p.Legend.Add(fmt.Sprintf("teams: %d", teams), line, points)
	}
	// The legend is drawn above the lines, and the outer labels extend beyond the first and the last point.
	p.Y.Min, p.Y.Max = 0, 1.5*p.Y.Max
	p.X.Min, p.X.Max = 0.7*p.X.Min, 1.5*p.X.Max
	return p, nil
}

func (f *figure) points(sizes []size, teams int) (points plotter.XYs) {
	for i := range sizes {
		if sizes[i].Teams == teams {
			points = append(points, plotter.XY{X: sizes[i].Posts, Y: f.of(&sizes[i])})
		}
	}
	return points
}

func numbersOfTeams(sizes []size) (teams []int) {
	for i := range sizes {
		if !slices.Contains(teams, sizes[i].Teams) {
			teams = append(teams, sizes[i].Teams)
		}
	}
	return teams
}

// ticks returns a tick for each number of posts.
func ticks(sizes []size) (ticks []plot.Tick) {
	for i := range sizes {
		tick := plot.Tick{Value: sizes[i].Posts, Label: fmt.Sprintf("%.0f", sizes[i].Posts)}
		if !slices.Contains(ticks, tick) {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
