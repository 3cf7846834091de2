package snapshot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/kubectl-sched/kubectl-sched/internal/workload"
)

// ReadOptions is what reading depends on besides the file.
type ReadOptions struct {
	// File names the file, for messages.
	File string
	// Kinds is the table of workloads that a snapshot written as text may have; nil
	// for the built-in one.
	Kinds *workload.Kinds
	// Limits bound what reading takes; for zero values there are defaults.
	Limits Limits
}

// Read reads a snapshot, and tells by its content whether that is a file of Write
// or Kubernetes objects in YAML or JSON, written by hand. Its errors name the file;
// of a text they are diag.Findings, with the places.
func Read(r io.Reader, o ReadOptions) (*Snapshot, error) {
	o.Limits = o.Limits.orDefault()
	if o.File == "" {
		o.File = "snapshot"
	}
	buffered := bufio.NewReaderSize(r, 256<<10)
	start, err := buffered.Peek(len(magic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read snapshot %s: %w", o.File, err)
	}
	if !bytes.Equal(start, []byte(magic)) {
		return readText(buffered, o)
	}
	s, err := readRecords(buffered, o.Limits)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", o.File, err)
	}
	return s, nil
}

// ReadFile reads the snapshot in a file, as Read does.
func ReadFile(path string, o ReadOptions) (*Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if o.File == "" {
		o.File = path
	}
	return Read(f, o)
}

// batchBytes is how many bytes of records are decoded at a time by one of several.
const batchBytes = 1 << 20

// buffers are what the bytes of batches are read into, used again and again.
type buffers struct{ sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new(make([]byte, 0, batchBytes+batchBytes/4)) }}}
}

// batch is a run of records of one kind, and the objects that they are decoded to.
type batch struct {
	kind    *Kind
	data    []byte
	ends    []int // of each record in data
	objects []Object
}

func readRecords(r *bufio.Reader, limits Limits) (*Snapshot, error) {
	line, err := r.ReadSlice('\n')
	if err != nil || len(line) > maxFirstLine {
		return nil, errors.New("its first line is damaged")
	}
	tool, err := parseFirstLine(line)
	if err != nil {
		return nil, err
	}
	workers := max(2, runtime.GOMAXPROCS(0))
	unpacked, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(workers), zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()

	free := newBuffers()
	in := &recordReader{free: free, r: bufio.NewReaderSize(&limited{r: unpacked, left: limits.Bytes}, 256<<10), max: limits.Record, tool: tool}
	var decoding errgroup.Group
	decoding.SetLimit(workers)
	var batches []*batch
	s := &Snapshot{}
	err = in.each(s, func(b *batch) {
		batches = append(batches, b)
		decoding.Go(func() error {
			err := b.decode()
			free.Put(new(b.data[:0]))
			b.data, b.ends = nil, nil
			return err
		})
	})
	if err := errors.Join(err, decoding.Wait()); err != nil {
		return nil, err
	}
	for _, b := range batches {
		for _, o := range b.objects {
			b.kind.list.add(s, o)
		}
	}
	s.Sort()
	return s, nil
}

// decode turns the records into objects, which keep nothing of their bytes.
func (b *batch) decode() error {
	b.objects = make([]Object, 0, len(b.ends))
	decode := b.kind.list.decoder()
	start := 0
	for _, end := range b.ends {
		o := b.kind.list.new()
		if err := unmarshal(decode, b.data[start:end], o); err != nil {
			return fmt.Errorf("it is damaged: one of the %s cannot be decoded: %w", b.kind.Name, err)
		}
		b.objects = append(b.objects, o)
		start = end
	}
	return nil
}

// unmarshal decodes one record. The decoders of the API's types are made for what
// an API server sends, and must not end the program on anything else.
func unmarshal(decode func([]byte, Object) error, data []byte, o Object) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return decode(data, o)
}

type recordReader struct {
	r     *bufio.Reader
	free  *buffers
	max   int64
	tool  string
	count uint64
}

// each reads the header into the snapshot, and calls visit with all other records.
func (in *recordReader) each(s *Snapshot, visit func(*batch)) error {
	kinds := map[uint64]*Kind{}
	for _, k := range allKinds() {
		kinds[k.number] = k
	}
	var current *batch
	flush := func() {
		if current != nil {
			visit(current)
			current = nil
		}
	}
	for {
		number, length, err := in.next()
		if err != nil {
			return err
		}
		if in.count == 1 != (number == recordHeader) {
			return errors.New("it is damaged: its header is missing or there twice")
		}
		if number == recordEnd || number == recordHeader {
			data, err := in.body(nil, length)
			if err != nil {
				return err
			}
			if number == recordHeader {
				h, err := decodeHeader(data)
				if err != nil {
					return fmt.Errorf("its header cannot be read: %w; it was written by kubectl sched %s, so read it with that or a later one", err, in.tool)
				}
				h.into(s)
				continue
			}
			flush()
			return in.end(data)
		}
		k := kinds[number]
		if k == nil {
			return fmt.Errorf("it has records of kind %d, which this program does not know; it was written by kubectl sched %s, so read it with that or a later one", number, in.tool)
		}
		if current != nil && (current.kind != k || len(current.data) >= batchBytes) {
			flush()
		}
		if current == nil {
			current = &batch{kind: k, data: *in.free.Get().(*[]byte)}
		}
		if current.data, err = in.body(current.data, length); err != nil {
			return err
		}
		current.ends = append(current.ends, len(current.data))
	}
}

// next reads what comes before the bytes of a record.
func (in *recordReader) next() (number uint64, length int, err error) {
	number, err = binary.ReadUvarint(in.r)
	if err != nil {
		return 0, 0, damaged(err)
	}
	n, err := binary.ReadUvarint(in.r)
	if err != nil {
		return 0, 0, damaged(err)
	}
	if n > uint64(in.max) {
		return 0, 0, fmt.Errorf("it is damaged, or made to fill the memory: a record has %d bytes, and may have %d", n, in.max)
	}
	in.count++
	return number, int(n), nil
}

// body appends the bytes of a record to data. They are read in pieces: the length
// is only what the file says.
func (in *recordReader) body(data []byte, length int) ([]byte, error) {
	for length > 0 {
		piece := min(length, 64<<10)
		at := len(data)
		data = append(data, make([]byte, piece)...)
		if _, err := io.ReadFull(in.r, data[at:]); err != nil {
			return nil, damaged(err)
		}
		length -= piece
	}
	return data, nil
}

// end checks the last record, and that nothing follows it.
func (in *recordReader) end(data []byte) error {
	count, n := binary.Uvarint(data)
	if n != len(data) || count != in.count-1 {
		return fmt.Errorf("it is damaged: it has %d records, and says that they are %d", in.count-1, count)
	}
	switch _, err := in.r.ReadByte(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return damaged(err)
	}
	return errors.New("it is damaged: something follows its end")
}

// damaged says what an error of unpacking means.
func damaged(err error) error {
	var tooMuch tooMuchError
	switch {
	case errors.As(err, &tooMuch):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early: it was not written or copied to its end")
	}
	return fmt.Errorf("it is damaged: %w", err)
}

// limited is a reader that fails after so many bytes.
type limited struct {
	r    io.Reader
	left int64
	all  int64
}

type tooMuchError struct{ bytes int64 }

func (e tooMuchError) Error() string {
	return fmt.Sprintf("it unpacks to more than %d MiB, which no cluster needs", e.bytes>>20)
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, tooMuchError{l.all}
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	l.all += int64(n)
	return n, err
}
