package orphan_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kubectl-sched/kubectl-sched/test/bench/orphan"
)

// role is what this program is when a test of it starts it.
const role = "ORPHAN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env, child.Stdout = append(os.Environ(), role+"=child"), os.Stdout
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case "child":
		ended := make(chan bool, 1)
		orphan.Then(func() { ended <- true })
		fmt.Fprintln(os.Stdout, "here")
		select {
		case <-ended:
		case <-time.After(time.Minute):
		}
	default:
		m.Run()
	}
}

// TestThen holds that a program is told when the one that started it was killed: its end of
// the pipe is closed.
func TestThen(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), role+"=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "here\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := lines.ReadByte()
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, io.EOF) {
			t.Errorf("after the parent's end the child's pipe says %v; want its end", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the child goes on after its parent's end")
	}
	_ = parent.Wait() // killed is how it ends
}
