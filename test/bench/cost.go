package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// costName is the name of what is measured of pods that use none of our plugins.
const costName = "cost"

const (
	// costPairs is how often both are measured in turn.
	costPairs = 60
	// leastCostRatio is the least that the upper bound of stock's time over ours may be.
	leastCostRatio = 0.98
	// resamples and confidence are of the bootstrap, seed of its random numbers.
	resamples, confidence, seed = 10000, 0.95, 1
)

// measureCost compares the CPU time that a pod costs which uses none of our plugins,
// with all of them and with none.
func measureCost(ctx context.Context, dir string, out io.Writer) error {
	program := filepath.Join(dir, "schedule")
	fmt.Fprintln(os.Stderr, "building the scheduler in process …")
	if err := command(ctx, "go", "build", "-o", program, "./test/bench/schedule").Run(); err != nil {
		return fmt.Errorf("build the scheduler in process: %w", err)
	}
	// Both are there all the time and take turns, so that a machine whose speed drifts
	// slows both alike.
	stock, err := startCost(ctx, program, "stock")
	if err != nil {
		return err
	}
	defer stock.stop()
	ours, err := startCost(ctx, program, "ours")
	if err != nil {
		return err
	}
	defer ours.stop()
	var ratios []float64
	for pair := range costPairs {
		inTurn := []*costProgram{stock, ours}
		if pair%2 == 1 {
			slices.Reverse(inTurn)
		}
		for _, p := range inTurn {
			if err := p.once(); err != nil {
				return err
			}
		}
		ratios = append(ratios, stock.took[pair]/ours.took[pair])
	}
	low, high := bootstrap(ratios)
	verdict := fmt.Sprintf("upper bound %.2f", leastCostRatio)
	if high < leastCostRatio {
		verdict += " NOT REACHED"
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tagainst\tpairs\tCPU a pod\tstock\tstock over ours\t95% of medians\tlimit\t")
	fmt.Fprintf(table, "pods that use none of our plugins\tkube-scheduler's default profile\t%d\t%s\t%s\t%.3f\t%.3f–%.3f\t%s\t\n", costPairs,
		time.Duration(median(ours.took)).Round(time.Microsecond), time.Duration(median(stock.took)).Round(time.Microsecond), median(ratios), low, high, verdict)
	if err := table.Flush(); err != nil {
		return err
	}
	if high < leastCostRatio {
		return fmt.Errorf("a pod that uses none of our plugins costs more: stock over ours is %.3f to %.3f; want %.2f", low, high, leastCostRatio)
	}
	return nil
}

// costProgram is a scheduler in a process of its own.
type costProgram struct {
	process *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Scanner
	took    []float64 // nanoseconds of CPU time a pod
}

func startCost(ctx context.Context, program, kind string) (*costProgram, error) {
	p := &costProgram{process: command(ctx, program, kind)}
	var err error
	if p.ask, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewScanner(answers)
	return p, p.process.Start()
}

// once has the program place some pods, and notes what each took.
func (p *costProgram) once() error {
	if _, err := fmt.Fprintln(p.ask); err != nil {
		return err
	}
	if !p.answers.Scan() {
		return fmt.Errorf("%s has ended: %w", p.process, cmp.Or(p.answers.Err(), io.ErrUnexpectedEOF))
	}
	took, err := strconv.ParseFloat(p.answers.Text(), 64)
	p.took = append(p.took, took)
	return err
}

// stop ends the program.
func (p *costProgram) stop() {
	_ = p.ask.Close() // which it takes as the end
	_ = p.process.Wait()
}

// bootstrap returns the bounds between which the median of so many ratios is.
func bootstrap(ratios []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(seed, seed))
	medians := make([]float64, resamples)
	sample := make([]float64, len(ratios))
	for i := range medians {
		for j := range sample {
			sample[j] = ratios[random.IntN(len(ratios))]
		}
		medians[i] = median(sample)
	}
	slices.Sort(medians)
	tail := int(float64(resamples) * (1 - confidence) / 2)
	return medians[tail], medians[resamples-1-tail]
}
