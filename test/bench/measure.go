package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

// row is one comparison: program a against the baseline b.
type row struct {
	name, baseline string
	runs           int
	// maxRatio is the largest median of a's wall time over b's; 0 for no limit.
	maxRatio float64
	// maxSeconds is the largest median wall time of a; 0 for no limit.
	maxSeconds float64
	// maxMiB is the largest peak resident set of a; 0 for no limit.
	maxMiB float64
	// pods is how many pods a places, running how many the running scheduler places a
	// second, and leastTimes how many times that those of a must be; 0 for none.
	pods, running, leastTimes float64
	a, b                      []string
	// pair measures both instead of running programs, if it is set.
	pair func(context.Context) (a, b usage, err error)
}

// once measures a and b one after the other.
func (r row) once(ctx context.Context) (a, b usage, err error) {
	if r.pair != nil {
		return r.pair(ctx)
	}
	if a, err = runOnce(ctx, r.a); err != nil {
		return a, b, err
	}
	b, err = runOnce(ctx, r.b)
	return a, b, err
}

// usage is what one run of a program took.
type usage struct {
	seconds, mib float64
}

// command returns a command that is killed with ctx and whose errors are shown.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	return c
}

func runOnce(ctx context.Context, argv []string) (usage, error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	start := time.Now()
	err := c.Run()
	took := time.Since(start)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // findings or differences
		err = nil
	}
	if err != nil {
		return usage{}, fmt.Errorf("%v: %w\n%s", argv, err, stderr.Bytes())
	}
	u := usage{seconds: took.Seconds()}
	if ru, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.mib = float64(ru.Maxrss) / 1024
	}
	return u, nil
}

// measure runs a and b in turn, after one warm-up of each.
func measure(ctx context.Context, r row) (a, b []usage, err error) {
	for i := range r.runs + 1 {
		ua, ub, err := r.once(ctx)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			a, b = append(a, ua), append(b, ub)
		}
	}
	return a, b, nil
}

func measureAll(ctx context.Context, rows []row, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tagainst\truns\tseconds\tbaseline\tratio\tpeak MiB\tlimit\t")
	over := 0
	for _, r := range rows {
		a, b, err := measure(ctx, r)
		if err != nil {
			return err
		}
		ratios := make([]float64, len(a))
		var seconds, baseline []float64
		peak := 0.0
		for i := range a {
			ratios[i] = a[i].seconds / b[i].seconds
			seconds = append(seconds, a[i].seconds)
			baseline = append(baseline, b[i].seconds)
			peak = max(peak, a[i].mib)
		}
		limit, ok := r.verdict(median(ratios), median(seconds), peak)
		if !ok {
			over++
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%.3f\t%.3f\t%.2f (%.2f–%.2f)\t%.0f\t%s\t\n", r.name, r.baseline, r.runs,
			median(seconds), median(baseline), median(ratios), slices.Min(ratios), slices.Max(ratios), peak, limit)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if over > 0 {
		return fmt.Errorf("%d of %d over the limit", over, len(rows))
	}
	return nil
}

// verdict returns the limits in words, and whether all are kept.
func (r row) verdict(ratio, seconds, mib float64) (string, bool) {
	words, ok := "", true
	check := func(limit, got float64, format string) {
		if limit == 0 {
			return
		}
		if words != "" {
			words += ", "
		}
		words += fmt.Sprintf(format, limit)
		if got > limit {
			words += " EXCEEDED"
			ok = false
		}
	}
	check(r.maxRatio, ratio, "ratio %.2f")
	check(r.maxSeconds, seconds, "%.1f s")
	check(r.maxMiB, mib, "%.0f MiB")
	if r.pods > 0 {
		rate := r.pods / seconds
		words += fmt.Sprintf(", %.0f pods/s: %.1f times the running scheduler's %.0f, at least %.0f", rate, rate/r.running, r.running, r.leastTimes)
		if rate < r.leastTimes*r.running {
			words += " NOT REACHED"
			ok = false
		}
	}
	return words, ok
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
