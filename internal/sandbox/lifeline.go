package sandbox

import (
	"os"
	"strconv"
)

// lifelineEnv tells a part which file descriptor is its lifeline: the reading
// end of a pipe whose writing end only the supervisor holds. It reaches its end
// when the supervisor is gone, whatever became of it, on every Unix.
const lifelineEnv = "SCHED_SANDBOX_LIFELINE"

// EndWithSupervisor ends this process when the process that started it is gone.
// A part calls it before anything else; outside a sandbox it does nothing.
func EndWithSupervisor() {
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil {
		return
	}
	lifeline := os.NewFile(uintptr(fd), "lifeline")
	if lifeline == nil {
		return
	}
	go func() {
		_, _ = lifeline.Read(make([]byte, 1)) // nothing is ever written: it returns at the end
		os.Exit(1)                            //nolint:forbidigo // This is what the function is for.
	}()
}
