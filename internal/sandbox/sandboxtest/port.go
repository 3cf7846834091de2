package sandboxtest

import (
	"errors"
	"fmt"
	"net"
)

// FreePort returns a port of the loopback interface on which nothing listens, for a
// program that must be told one. Something else may take it before the program does.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("a listener on TCP has the address %v", listener.Addr()), listener.Close())
	}
	return address.Port, listener.Close()
}
