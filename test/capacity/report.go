// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	thousand = 1000
)

// grouped formats a number with commas.
func grouped[N int | int64](n N) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func size(bytes int64) string {
	if bytes >= gibibyte {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
	}
	return fmt.Sprintf("%.0f MiB", float64(bytes)/mebibyte)
}

func inUnits(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// table writes a Markdown table.
func table(out io.Writer, rows ...[]string) {
	for i, row := range rows {
		fmt.Fprintln(out, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			fmt.Fprintln(out, strings.Repeat("| --- ", len(row))+"|")
		}
	}
	fmt.Fprintln(out)
}

// report writes the tables of a simulated year.
func report(out io.Writer, r *Result, c *Costs) {
	largest := instant{}
	if all := r.Largest(); len(all) > 0 {
		largest = all[0]
	}
	last := r.Samples[len(r.Samples)-1]
	objects := int64(r.MostObjects)
	table(out, [][]string{
		{"measure", "result", "why"},
		{"teams; accounts", grouped(r.Teams) + "; " + grouped(r.Accounts), "the load: an account for every eight posts a day, at least four for each team"},
		{"posts accepted", grouped(r.Accepted), "every one has an outcome"},
		{"rejected by a budget; by a plan", grouped(r.OverBudget) + "; " + grouped(r.OverPlan), "imports over the budget for unfinished posts; the starter plan's limit of 30 posts to X a month"},
		{"published twice; lost; limits exceeded", fmt.Sprintf("%d; %d; %d", r.Twice, r.Lost, r.Violations), "must be zero"},
		{"published; failed; undecided", grouped(r.Published) + "; " + grouped(r.Failed) + "; " + grouped(r.Undecided), "platforms reject one call in 5,000 permanently; each of the " + grouped(r.Lookups) + " calls with a lost response is looked up"},
		{"lateness of scheduled posts: p50; p99; p99.9", inUnits(r.Lateness.Quantile(0.5)) + "; " + inUnits(r.Lateness.Quantile(0.99)) + "; " + inUnits(r.Lateness.Quantile(0.999)), "the claim's write and, on the hour, the queue of writes"},
		{"the largest instant: posts; lateness of its last post", grouped(largest.posts) + "; " + inUnits(largest.last), "nine o'clock in the largest time zone, on a working day"},
		{"late because of a platform's rate limit", grouped(r.Paused), "one call in 2,000 hits a one-minute rate limit; not counted above"},
		{"uploads; forecast to be late; late", grouped(r.Uploads) + "; " + grouped(r.ForecastLate) + "; " + grouped(r.LateUploads), "videos and images, before their posts are due"},
		{"writes a day; in the busiest minute; in the busiest second", grouped(r.Writes/r.Days) + "; " + grouped(r.PeakMinute) + "; " + grouped(r.PeakSecond), "eight for each post to two accounts, and one an hour for each account; events and removals wait for a quiet period"},
		{"maximum posts in the cluster; posts that remain", grouped(r.MostObjects) + "; " + grouped(r.Kept), "two days of finished posts, and up to three of scheduled ones"},
		{"etcd; each kube-apiserver's watch cache", size(objects*c.FinishedBytes) + "; " + size(objects*c.WatchBytes), "4.1 KB and 11.8 KB for each"},
		{"manager; apiserver", size(c.IdleBytes+int64(r.MostUnfinished)*c.ManagerBytes) + "; " + size(c.IdleBytes+objects*c.APIServerBytes), "4.5 KB for each of " + grouped(r.MostUnfinished) + " unfinished posts; 0.25 KB for each post"},
		{"archive: posts; size", grouped(last.Archived) + "; " + size(int64(last.Archived)*(r.RecordBytes()+c.ListBytes)), fmt.Sprintf("88 days of posts; a record takes %s bytes, and its entries in lists %d", grouped(r.RecordBytes()), c.ListBytes)},
	}...)
	months := [][]string{{"day", "posts in the cluster", "etcd", "archived posts", "archive", "writes in the month"}}
	for _, s := range r.Samples {
		months = append(months, []string{
			fmt.Sprint(s.Day), grouped(s.Objects), size(int64(s.Objects) * c.FinishedBytes), grouped(s.Archived),
			size(int64(s.Archived) * (r.RecordBytes() + c.ListBytes)), grouped(s.Writes),
		})
	}
	table(out, months...)
}

// cellDays is the length of a cell's simulation in days; the first five are a working week.
const cellDays = 8

// cell is a week's load on a control plane.
type cell struct {
	postsPerMonth, processors int
	arms                      bool
	why                       string
}

// cells returns the loads that show the limits of one installation.
func cells() []cell {
	return []cell{
		{300 * thousand, 2, false, "a small installation on two processors"},
		{1000 * thousand, 2, false, "the year above"},
		{1000 * thousand, 2, true, "the same, with crowds claimed ahead"},
		{1000 * thousand, 8, false, "more processors for the control plane instead"},
		{3000 * thousand, 2, false, "three times the posts: a minute late at nine o'clock"},
		{3000 * thousand, 8, true, "the maximum for one cell"},
	}
}

// reportCells simulates each cell for a week and writes a table.
func reportCells(out io.Writer, base Load) error {
	rows := [][]string{{"posts a month", "processors", "claimed ahead", "largest instant", "lateness of its last post", "p99", "writes in the busiest minute", "why"}}
	for _, c := range cells() {
		load, costs := base, measured()
		load.PostsPerMonth, load.Days, costs.Processors = c.postsPerMonth, cellDays, c.processors
		r, err := Simulate(load, costs, c.arms, Broken{})
		if err != nil {
			return err
		}
		if r.Violations > 0 {
			return fmt.Errorf("%d guarantees were violated; the first: %s", r.Violations, r.Violation)
		}
		largest := r.Largest()[0]
		ahead := "no"
		if c.arms {
			ahead = fmt.Sprintf("%.0f %%", float64(100*r.Armed)/float64(r.Accepted))
		}
		rows = append(rows, []string{
			grouped(c.postsPerMonth), fmt.Sprint(c.processors), ahead, grouped(largest.posts), inUnits(largest.last), inUnits(r.Lateness.Quantile(0.99)), grouped(r.PeakMinute), c.why,
		})
	}
	table(out, rows...)
	return nil
}
