package engine

import (
	"sync"
	"sync/atomic"
)

// chunk is how many nodes a worker takes at a time.
const chunk = 64

// each calls do for 0 to n-1, on the chooser's workers. What do returns belongs at
// its index: the order of the calls is not known.
func (c *chooser) each(n int, do func(int)) {
	if c.workers < 2 || n <= chunk {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range c.workers {
		group.Go(func() {
			for {
				end := int(next.Add(chunk))
				if end-chunk >= n {
					return
				}
				for i := end - chunk; i < min(end, n); i++ {
					do(i)
				}
			}
		})
	}
	group.Wait()
}
