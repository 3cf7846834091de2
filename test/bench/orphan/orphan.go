// Package orphan tells a program that the one that started it has ended, however that
// one ended: a benchmark that is killed leaves nothing behind that goes on taking the
// machine's time.
//
// It must not know what the program does.
package orphan

import (
	"os"
	"time"
)

// every is how often it is looked for the parent.
const every = 500 * time.Millisecond

// Then calls end as soon as the program that started this one has ended.
func Then(end func()) {
	parent := os.Getppid()
	go func() {
		for range time.Tick(every) {
			if os.Getppid() != parent { // somebody else's by now
				end()
				return
			}
		}
	}()
}
