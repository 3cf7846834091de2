package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Serve is the child's side of Isolated: it reads one request from stdin,
// evaluates it and writes the result to stdout. It sets limits of the whole
// process, and it returns while an evaluation that exceeds one still runs: the
// caller must exit then. The error is about reading and writing alone.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var req request
	if err := json.NewDecoder(stdin).Decode(&req); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	limits := req.Limits.withDefaults()
	// The collector works harder as the limit comes near, so that what is over
	// it is in use, and not merely waiting to be collected.
	debug.SetMemoryLimit(int64(limits.Memory / 10 * 9))
	debug.SetMaxStack(int(limits.Memory / 16))

	out := &messages{encoder: json.NewEncoder(stdout)}
	done := make(chan message, 1)
	go func() {
		placement, findings := evaluate(ctx, req.Options, func(folder string, begins bool) {
			if begins {
				out.send(message{Begin: folder})
			} else {
				out.send(message{End: folder})
			}
		})
		done <- message{Result: &outcome{Placement: toWire(placement), Findings: findings}}
	}()
	out.send(watch(ctx, limits, done))
	return out.err()
}

// watchInterval is how often a watch looks at the memory in use: often enough
// that little can be allocated in between.
const watchInterval = 10 * time.Millisecond

// watch waits for the evaluation's last message, or for it to exceed a limit.
func watch(ctx context.Context, limits Limits, done <-chan message) message {
	deadline := time.NewTimer(limits.Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case m := <-done:
			return m
		case <-deadline.C:
			return message{Exceeded: exceededTime}
		case <-ctx.Done():
			return message{Exceeded: exceededTime}
		case <-tick.C:
			if memoryInUse() > limits.Memory {
				return message{Exceeded: exceededMemory}
			}
		}
	}
}

// memoryInUse returns how many bytes the Go runtime holds, stacks included.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// messages writes messages from several goroutines, and remembers the first
// error.
type messages struct {
	mu      sync.Mutex
	encoder *json.Encoder
	failed  error
}

func (m *messages) send(msg message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.encoder.Encode(msg); err != nil && m.failed == nil {
		m.failed = fmt.Errorf("write the result: %w", err)
	}
}

func (m *messages) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}
