package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-sched/kubectl-sched/internal/release/archive"
)

// entry is what an unpacker makes of a file.
type entry struct {
	Name string
	Mode fs.FileMode
	Data string
	At   time.Time
}

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

type format struct {
	write func(io.Writer, []archive.File, time.Time) error
	read  func([]byte) ([]entry, error)
}

var formats = map[string]format{"tar.gz": {archive.TarGz, readTarGz}, "zip": {archive.Zip, readZip}}

func readTarGz(data []byte) (entries []entry, err error) {
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if !plain.ModTime.IsZero() || plain.Name != "" {
		return nil, errors.New("the gzip header has a time or a name")
	}
	in := tar.NewReader(plain)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" || header.Typeflag != tar.TypeReg {
			return nil, errors.New(header.Name + " is no regular file of nobody's")
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{header.Name, header.FileInfo().Mode(), string(data), header.ModTime.UTC()})
	}
}

func readZip(data []byte) (entries []entry, err error) {
	in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	for _, f := range in.File {
		open, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(open)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{f.Name, f.Mode(), string(data), f.Modified.UTC()})
	}
	return entries, nil
}

// TestFormats holds that whatever is put in comes out, in order, and that neither
// the order in which it is put in, nor the time zone, changes a byte.
func TestFormats(t *testing.T) {
	t.Parallel()
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				data := rapid.MapOf(rapid.StringMatching(`[a-z]{1,8}(/[a-z]{1,8})?`), rapid.SliceOf(rapid.Byte())).Draw(t, "files")
				var files []archive.File
				want := []entry{}
				for name, content := range data {
					mode := rapid.SampledFrom([]fs.FileMode{0o644, 0o755}).Draw(t, "mode of "+name)
					files = append(files, archive.File{Name: name, Mode: mode, Data: content})
					want = append(want, entry{name, mode, string(content), at})
				}
				slices.SortFunc(want, func(a, b entry) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
				var first, second bytes.Buffer
				if err := f.write(&first, files, at); err != nil {
					t.Fatal(err)
				}
				slices.Reverse(files)
				if err := f.write(&second, files, at.Add(time.Millisecond).In(time.FixedZone("elsewhere", 3600))); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(first.Bytes(), second.Bytes()) {
					t.Fatal("the same files gave other bytes")
				}
				got, err := f.read(first.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, append([]entry{}, got...)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestNames holds that what an unpacker would refuse, or write elsewhere, is not
// written.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, f := range formats {
		for _, bad := range []string{"", ".", "/etc/passwd", "../up", "a/../b", "a//b", "./a", `a\b`, "a..b", "a/"} {
			if err := f.write(io.Discard, []archive.File{{Name: bad, Mode: 0o644}}, at); err == nil {
				t.Errorf("%s: %q was written", name, bad)
			}
		}
		if err := f.write(io.Discard, []archive.File{{Name: "a", Mode: 0o644}, {Name: "a", Mode: 0o644}}, at); err == nil {
			t.Errorf("%s: two files of one name were written", name)
		}
	}
}
