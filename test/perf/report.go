// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/prometheus/procfs"

	"github.com/herald-social/herald/hack/local/workspace"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

// machine describes the properties of the machine that affect the results most.
type machine struct {
	Cores     int     `json:"cores"`
	MemoryGiB float64 `json:"memory_gib,omitempty"`
	OS        string  `json:"os"`
	Arch      string  `json:"arch"`
	Go        string  `json:"go"`
}

// report collects the results: the rows of the printed table, and the values by benchmark id for programs.
type report struct {
	machine machine
	values  map[string]any
	rows    []row
	cpu     []comparedCPU
}

// row is a line of the table.
type row struct {
	id, what, floor, herald, ratio, goal string
	met                                  bool
}

type comparedCPU struct {
	id            string
	floor, herald map[string]float64
}

func newReport(set settings, version string) *report {
	m := machine{Cores: runtime.NumCPU(), MemoryGiB: memoryGiB(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	return &report{machine: m, values: map[string]any{
		"machine": m, "version": version, "scale": set.scale, "rounds": set.rounds,
	}}
}

// add adds a benchmark's result to the machine-readable report.
func (r *report) add(id string, values any) { r.values[id] = values }

// compared adds the row of a benchmark that has a floor, and stores the result with additional values.
func (r *report) compared(id, what string, c comparison, more map[string]any) {
	values := map[string]any{}
	data, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(data, &values)
	}
	if err != nil {
		panic(err) // only numbers and names, which can always be marshalled
	}
	maps.Copy(values, more)
	r.add(id, values)
	r.rows = append(r.rows, row{
		id: id, what: what, floor: fmt.Sprintf("%.0f", c.FloorPerS), herald: fmt.Sprintf("%.0f", c.HeraldPerS),
		ratio: fmt.Sprintf("%.2f", c.Ratio), goal: fmt.Sprintf("≥ %.2f", c.Goal), met: c.Met,
	})
	r.cpu = append(r.cpu, comparedCPU{id, c.FloorCPU, c.HeraldCPU})
}

// limit adds the row of a result that has a limit instead of a floor.
func (r *report) limit(id, what, herald, goal string, met bool) {
	r.rows = append(r.rows, row{id: id, what: what, herald: herald, goal: goal, met: met})
}

// print writes the table.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d cores, %.0f GiB of memory, %s/%s, %s; Herald %s; medians of %v rounds, sizes × %v\n\n",
		r.machine.Cores, r.machine.MemoryGiB, r.machine.OS, r.machine.Arch, r.machine.Go, r.values["version"], r.values["rounds"], r.values["scale"])
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "\tmeasure\tfloor\tHerald\tratio\tgoal\t")
	for _, row := range r.rows {
		word := "met"
		switch {
		case row.goal == "":
			word = "–"
		case !row.met:
			word = "MISSED"
		}
		_, _ = fmt.Fprintln(table, strings.Join([]string{row.id, row.what, row.floor, row.herald, row.ratio, row.goal, word}, "\t"))
	}
	_ = table.Flush() // printing cannot fail
	if len(r.cpu) > 0 && r.machine.OS == "linux" {
		fmt.Fprintln(out, "\nCPU time per post, ms")
		for _, c := range r.cpu {
			fmt.Fprintf(out, "  %s floor    %s\n", c.id, inWords(c.floor))
			fmt.Fprintf(out, "  %s Herald   %s\n", c.id, inWords(c.herald))
		}
	}
	fmt.Fprintln(out)
}

func inWords(cpu map[string]float64) string {
	var parts []string
	var sum float64
	for _, name := range slices.Sorted(maps.Keys(cpu)) {
		sum += cpu[name]
		parts = append(parts, fmt.Sprintf("%s %.2f", name, cpu[name]))
	}
	return fmt.Sprintf("%.2f = %s", sum, strings.Join(parts, " + "))
}

// write writes the machine-readable report.
func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r.values, "", "  ")
	if err != nil {
		return err
	}
	return workspace.WriteFile(path, append(data, '\n'), 0o644)
}

// memoryGiB returns the machine's memory on Linux, and zero on other systems.
func memoryGiB() float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	memory, err := proc.Meminfo()
	if err != nil || memory.MemTotalBytes == nil {
		return 0
	}
	return measure.Rounded(float64(*memory.MemTotalBytes)/(1<<30), 1)
}
