package cli

import (
	"os"
	"strconv"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/internal/sandbox"
)

// partNames returns the names of all parts.
func partNames() []string {
	var names []string
	for _, part := range sandbox.Parts() {
		names = append(names, string(part))
	}
	return names
}

// partList returns the names of all parts for a help text.
func partList() string { return strings.Join(partNames(), ", ") }

// residentMemory returns how many bytes of memory the process holds, where the
// system tells.
func residentMemory(pid int) (bytes int64, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
