package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path that a socket's address holds on every Unix.
const maxSocketPath = 100

// listen makes the control socket, which only this user may open.
func (f folder) listen() (net.Listener, error) {
	path, done, err := f.shortSocketPath()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(f.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The folder itself is closed to others (0700), so no moment is open between
	// the socket's making and a change of its mode.
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // path may be the short one, gone by then
	return listener, nil
}

// dial opens the control socket.
func (f folder) dial(ctx context.Context) (net.Conn, error) {
	path, done, err := f.shortSocketPath()
	if err != nil {
		return nil, err
	}
	defer done()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", path)
}

// shortSocketPath returns a path of the control socket that fits an address:
// its own, or through a symbolic link when the folder lies deep.
func (f folder) shortSocketPath() (path string, done func(), err error) {
	if len(f.socket()) <= maxSocketPath {
		return f.socket(), func() {}, nil
	}
	dir, err := os.MkdirTemp("", "sbx")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) } // a link left behind hurts nobody
	link := filepath.Join(dir, "d")
	if err := os.Symlink(string(f), link); err != nil {
		done()
		return "", nil, err
	}
	path = filepath.Join(link, filepath.Base(f.socket()))
	if len(path) > maxSocketPath {
		done()
		return "", nil, fmt.Errorf("the path of the folder for temporary files (%s) is too long for a socket; set TMPDIR", os.TempDir())
	}
	return path, done, nil
}
