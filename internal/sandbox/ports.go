package sandbox

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// loopback is the only address that anything in a sandbox listens on.
const loopback = "127.0.0.1"

// port is a TCP port of 127.0.0.1 that is ours for as long as the socket is
// open. The socket is bound and never listens, and shares its port
// (SO_REUSEPORT) with the part that does. So nobody else is given the port, not
// even while the part is dead, and a client of a dead part is refused at once
// instead of waiting in a queue.
type port struct {
	number int
	socket int
}

// reservePort reserves the given port, or a free one that the system chooses
// when number is 0. The error says so when the port is taken.
func reservePort(number int) (*port, error) {
	if number != 0 {
		// Sharing would let us in beside another sandbox: ask without it first.
		probe, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(number)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("port %d of %s is taken by another program; choose another port, or none to be given a free one", number, loopback)
		}
		if err != nil {
			return nil, fmt.Errorf("reserve port %d: %w", number, err)
		}
		if err := probe.Close(); err != nil {
			return nil, fmt.Errorf("reserve port %d: %w", number, err)
		}
	}
	syscall.ForkLock.RLock() // no child may inherit the socket before it is marked
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	bound, err := bindShared(socket, number)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", errors.Join(err, unix.Close(socket)))
	}
	return &port{number: bound, socket: socket}, nil
}

// bindShared binds socket and returns the port that it got.
func bindShared(socket, number int) (int, error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	inet, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("the socket's address is a %T, not IPv4", address)
	}
	return inet.Port, nil
}

// address returns "127.0.0.1:port".
func (p *port) address() string { return net.JoinHostPort(loopback, strconv.Itoa(p.number)) }

// url returns "https://127.0.0.1:port".
func (p *port) url() string { return "https://" + p.address() }

// release gives the port back.
func (p *port) release() error { return unix.Close(p.socket) }
