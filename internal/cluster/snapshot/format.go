package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A file begins with one line of text, so that "head -1" says what it is:
//
//	kubectl-sched snapshot 1 v0.3.0
//
// which are the version of the format and the program that wrote it. What follows is
// one zstd stream of records: the number of a kind and a length, both as uvarints,
// and as many bytes: an object in the binary form of its API, or in JSON where it
// has no Go type. The first record is the header, the last one the count of all
// others, so that a file that was cut short is noticed.
const (
	magic = "kubectl-sched snapshot "
	// formatVersion is raised when a file can no longer be read by older programs. A
	// new kind of record needs no other version: who does not know it says so.
	formatVersion = 1

	recordEnd    = 0
	recordHeader = 1

	// maxFirstLine is how long the first line may be.
	maxFirstLine = 200
)

// Limits bound what reading a file may take, whoever wrote it.
type Limits struct {
	// Bytes is how many bytes the file may unpack to.
	Bytes int64
	// Record is how many bytes one object may have. The API server takes at most
	// 3 MiB.
	Record int64
	// Text is how many bytes a snapshot that is written as text may have.
	Text int64
}

// defaultLimits are far above what the largest cluster needs.
var defaultLimits = Limits{Bytes: 4 << 30, Record: 16 << 20, Text: 256 << 20}

func (l Limits) orDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = defaultLimits.Bytes
	}
	if l.Record <= 0 {
		l.Record = defaultLimits.Record
	}
	if l.Text <= 0 {
		l.Text = defaultLimits.Text
	}
	return l
}

// header is what a snapshot says of itself, in a file and, with apiVersion and kind,
// in text.
type header struct {
	Taken      *time.Time  `json:"taken,omitempty"`
	Cluster    string      `json:"cluster,omitempty"`
	Version    string      `json:"version,omitempty"`
	Anonymized bool        `json:"anonymized,omitempty"`
	Served     []string    `json:"served,omitempty"`
	Missing    []Missing   `json:"missing,omitempty"`
	Schedulers []Scheduler `json:"schedulers,omitempty"`
}

func headerOf(s *Snapshot) header {
	h := header{Cluster: s.Cluster, Version: s.Version, Anonymized: s.Anonymized, Served: s.Served, Missing: s.Missing, Schedulers: s.Schedulers}
	if !s.Taken.IsZero() {
		taken := s.Taken.UTC()
		h.Taken = &taken
	}
	return h
}

func (h header) into(s *Snapshot) {
	if h.Taken != nil {
		s.Taken = h.Taken.UTC()
	}
	s.Cluster, s.Version, s.Anonymized, s.Served, s.Missing, s.Schedulers = h.Cluster, h.Version, h.Anonymized, h.Served, h.Missing, h.Schedulers
}

// firstLine is the line that a file of this format begins with.
func firstLine(tool string) string {
	tool = strings.Join(strings.Fields(tool), "-")
	if tool == "" {
		tool = "unknown"
	}
	return magic + strconv.Itoa(formatVersion) + " " + tool[:min(len(tool), maxFirstLine/2)] + "\n"
}

// parseFirstLine returns which program wrote the file; its error says which one can
// read it where we cannot.
func parseFirstLine(line []byte) (tool string, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(magic))
	if !ok || !bytes.HasSuffix(line, []byte("\n")) {
		return "", errors.New("its first line is damaged")
	}
	words := strings.Fields(string(rest))
	if len(words) != 2 {
		return "", errors.New("its first line is damaged")
	}
	version, err := strconv.Atoi(words[0])
	switch {
	case err != nil:
		return "", fmt.Errorf("its first line has the version %q, which is no number", words[0])
	case version != formatVersion:
		return "", fmt.Errorf("it is of format %d, written by kubectl sched %s, and this program reads format %d; read it with kubectl sched %s or a later one", version, words[1], formatVersion, words[1])
	}
	return words[1], nil
}

// decodeHeader is strict: what is not known was written by another version.
func decodeHeader(data []byte) (header, error) {
	var h header
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, err
	}
	for _, name := range h.Served {
		if err := checkServed(name); err != nil {
			return h, err
		}
	}
	return h, nil
}

// checkServed returns an error for what Served cannot name.
func checkServed(name string) error {
	if known := optional(); !slices.Contains(known, name) {
		return fmt.Errorf("%q is no kind that some clusters serve and others do not; those are: %s", name, strings.Join(known, ", "))
	}
	return nil
}
