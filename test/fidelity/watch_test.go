package fidelity_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kubectl-sched/kubectl-sched/schedulerbin/recording"
)

// watcher reads a recording while it is written, and knows when a pod of each case
// was last tried.
type watcher struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (w *watcher) last(namespace string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[namespace]
}

// follow reads the file until ctx is over.
func (w *watcher) follow(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 1<<20)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var line []byte
	for {
		part, err := lines.ReadBytes('\n')
		line = append(line, part...)
		if errors.Is(err, io.EOF) {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			continue
		}
		if err != nil {
			return err
		}
		var c struct {
			Attempts []recording.Attempt `json:"attempts"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		line = line[:0]
		w.mu.Lock()
		for _, a := range c.Attempts {
			w.at[a.Namespace] = time.Now()
		}
		w.mu.Unlock()
	}
}
