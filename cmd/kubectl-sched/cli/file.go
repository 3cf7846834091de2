package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a file in one step: after a failure the old content, or no
// file, is there.
func replaceFile(name string, data []byte, mode fs.FileMode) error {
	return replaceFileBy(name, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// replaceFileBy is replaceFile for content that is written piece by piece.
func replaceFileBy(name string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if err := write(temp); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := errors.Join(temp.Chmod(mode), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
