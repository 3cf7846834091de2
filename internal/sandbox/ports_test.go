package sandbox

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// TestReservedPort holds what the rest relies on: nobody else is given the port,
// a client is refused as long as no part serves, and one that shares it can.
func TestReservedPort(t *testing.T) {
	t.Parallel()
	taken := map[int]bool{}
	for range 200 {
		p, err := reservePort(0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.release() })
		if taken[p.number] {
			t.Fatalf("port %d was given twice", p.number)
		}
		taken[p.number] = true
		if connection, err := net.Dial("tcp", p.address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial of a port that nobody serves: %v, %v", connection, err)
		}
		if _, err := net.Listen("tcp", p.address()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("another program got the port: %v", err)
		}
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	number := other.Addr().(*net.TCPAddr).Port
	if _, err := reservePort(number); err == nil || !strings.Contains(err.Error(), "is taken by another program") {
		t.Errorf("error is %v", err)
	}

	ours, err := reservePort(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.release() }()
	if _, err := reservePort(ours.number); err == nil || !strings.Contains(err.Error(), "is taken by another program") {
		t.Errorf("the port of another sandbox: error is %v", err)
	}
}
