// Package archive writes files into a tar.gz or a zip whose bytes follow from the
// files alone: entries are sorted, all of one time, and belong to nobody.
//
// It must not know what the files are.
package archive

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one entry: a regular file.
type File struct {
	// Name is its path in the archive, with slashes, relative and clean.
	Name string
	// Mode has the permissions.
	Mode fs.FileMode
	// Data is what is in it.
	Data []byte
}

// TarGz writes the files as a gzipped tar. at is when all of them changed last.
func TarGz(to io.Writer, files []File, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := Tar(compressed, files, at); err != nil {
		return err
	}
	return compressed.Close()
}

// Tar writes the files as a tar. at is when all of them changed last.
func Tar(to io.Writer, files []File, at time.Time) error {
	files, err := sorted(files)
	if err != nil {
		return err
	}
	out := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Data)), Mode: int64(f.Mode.Perm()), ModTime: whole(at), Format: tar.FormatUSTAR,
		}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		if _, err := out.Write(f.Data); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
	}
	return out.Close()
}

// Zip writes the files as a zip. at is when all of them changed last.
func Zip(to io.Writer, files []File, at time.Time) error {
	files, err := sorted(files)
	if err != nil {
		return err
	}
	out := zip.NewWriter(to)
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: whole(at)}
		header.SetMode(f.Mode.Perm())
		entry, err := out.CreateHeader(header)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		if _, err := entry.Write(f.Data); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
	}
	return out.Close()
}

// whole returns the time as both formats can hold it, wherever the machine is.
func whole(at time.Time) time.Time { return at.UTC().Truncate(time.Second) }

// sorted returns the files in order, or an error that says which of them unpackers
// would refuse.
func sorted(files []File) ([]File, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	for i, f := range files {
		// krew refuses two dots anywhere in a name.
		if f.Name != path.Clean(f.Name) || path.IsAbs(f.Name) || f.Name == "." || strings.Contains(f.Name, "..") || strings.Contains(f.Name, `\`) {
			return nil, fmt.Errorf("%q is no name for a file in an archive", f.Name)
		}
		if i > 0 && files[i-1].Name == f.Name {
			return nil, fmt.Errorf("two files are called %q", f.Name)
		}
	}
	return files, nil
}
