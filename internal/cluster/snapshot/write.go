package snapshot

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Write writes the snapshot as one compressed file. tool is the version of the
// program that writes it, for whoever cannot read it. Equal snapshots give equal
// bytes. It holds no more than one object besides the snapshot.
func Write(w io.Writer, s *Snapshot, tool string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write snapshot: %w", err)
		}
	}()
	if _, err := io.WriteString(w, firstLine(tool)); err != nil {
		return err
	}
	// One encoder, so that the same bytes come out on every machine.
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	records := &recordWriter{w: bufio.NewWriterSize(packed, 256<<10)}
	err = records.snapshot(s)
	if err == nil {
		err = records.w.Flush()
	}
	return errors.Join(err, packed.Close())
}

type recordWriter struct {
	w      *bufio.Writer
	prefix []byte
	count  uint64
}

func (r *recordWriter) snapshot(s *Snapshot) error {
	head, err := json.Marshal(headerOf(s))
	if err != nil {
		return err
	}
	if err := r.record(recordHeader, head); err != nil {
		return err
	}
	for _, k := range allKinds() {
		for o := range k.list.all(s) {
			data, err := k.list.marshal(o)
			if err == nil {
				err = r.record(k.number, data)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w", k.Name, nameOf(o), err)
			}
		}
	}
	return r.record(recordEnd, binary.AppendUvarint(nil, r.count))
}

func (r *recordWriter) record(number uint64, data []byte) error {
	r.prefix = binary.AppendUvarint(r.prefix[:0], number)
	r.prefix = binary.AppendUvarint(r.prefix, uint64(len(data)))
	if _, err := r.w.Write(r.prefix); err != nil {
		return err
	}
	r.count++
	_, err := r.w.Write(data)
	return err
}

// nameOf is "namespace/name", or the name alone.
func nameOf(o Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
