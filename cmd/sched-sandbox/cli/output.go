package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// moveOutput sends what this process prints from now on into the folder's log of
// the supervisor: the terminal that it was started from is somebody else's now.
func moveOutput(dir string) error {
	log, err := os.OpenFile(filepath.Join(dir, "logs", "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of the supervisor: %w", err)
	}
	defer log.Close()
	for _, descriptor := range []int{1, 2} {
		if err := unix.Dup2(int(log.Fd()), descriptor); err != nil {
			return fmt.Errorf("move output to the log: %w", err)
		}
	}
	return nil
}
