// Package baseline remembers the findings that were there when somebody began to look,
// so that only new ones are reported.
//
// It maps findings and their fingerprints to a file that is kept with the repository,
// and such a file and later findings to those that it does not know. The package must
// not know how fingerprints are made, nor read files.
package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kubectl-sched/kubectl-sched/internal/lint/fingerprint"
	"github.com/kubectl-sched/kubectl-sched/internal/workload/yamldoc"
	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// What a baseline file begins with.
const (
	APIVersion = "kubectl-sched.github.io/v1alpha1"
	Kind       = "Baseline"
)

// MaxFile is how many bytes a baseline file may have: far more than a repository has
// findings.
const MaxFile = 64 << 20

// Entry is a finding that is known, or several that are alike.
type Entry struct {
	Rule string `json:"rule"`
	// File is where it was found, as fingerprints name files; empty for none.
	File string `json:"file,omitempty"`
	// Fingerprint is the hash of a fingerprint.Print.
	Fingerprint string `json:"fingerprint"`
	// Count is how many there are.
	Count int `json:"count"`
	// Message is what the first of them said, for whoever reads the file.
	Message string `json:"message"`

	at diag.Range
}

// Baseline is the content of a baseline file.
type Baseline struct {
	entries []Entry
}

// New returns the baseline that knows the findings, whose prints are given in the same
// order; name names their files as the prints do.
func New(findings diag.Findings, prints []fingerprint.Print, name func(string) string) *Baseline {
	index := map[string]int{}
	b := &Baseline{}
	for i, f := range findings {
		hash := prints[i].Hash
		if at, seen := index[hash]; seen {
			b.entries[at].Count++
			continue
		}
		index[hash] = len(b.entries)
		e := Entry{Rule: f.Rule, Fingerprint: hash, Count: 1}
		if f.Range.Start.IsValid() {
			e.File = name(f.Range.Start.File)
		}
		f.Range = diag.Range{}
		e.Message = f.String()
		b.entries = append(b.entries, e)
	}
	slices.SortFunc(b.entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return b
}

// Len returns how many findings the baseline knows.
func (b *Baseline) Len() int {
	n := 0
	for _, e := range b.entries {
		n += e.Count
	}
	return n
}

// Encode returns the file, with one entry a line, so that two branches can be merged.
func (b *Baseline) Encode() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n  \"apiVersion\": %q,\n  \"kind\": %q,\n  \"entries\": [", APIVersion, Kind)
	for i, e := range b.entries {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e); err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(bytes.TrimSpace(line.Bytes()))
	}
	if len(b.entries) > 0 {
		out.WriteString("\n  ")
	}
	out.WriteString("]\n}\n")
	return out.Bytes(), nil
}

const rule = "input/baseline"

// Parse reads a baseline file. Of entries with one fingerprint, as a merge of two
// branches may leave, the highest count holds.
func Parse(file string, data []byte) (*Baseline, diag.Findings) {
	fail := func(at diag.Range, format string, args ...any) (*Baseline, diag.Findings) {
		return nil, diag.Findings{{Rule: rule, Severity: diag.Error, Range: at, Message: fmt.Sprintf(format, args...)}}
	}
	whole := diag.At(diag.Pos{File: file})
	var document struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Entries    []Entry `json:"entries"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		at := whole
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = diag.At(diag.NewText(data).Pos(file, int(min(syntax.Offset, int64(len(data))))))
		}
		return fail(at, "this is no baseline: %v; write it with --write-baseline", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fail(whole, "there is something behind the baseline; write it with --write-baseline")
	}
	if document.APIVersion != APIVersion || document.Kind != Kind {
		return fail(whole, "this is no baseline of apiVersion %q and kind %q; write it with --write-baseline", APIVersion, Kind)
	}
	places := entryPlaces(file, data)
	b := &Baseline{}
	index := map[string]int{}
	for i, e := range document.Entries {
		e.at = whole
		if i < len(places) {
			e.at = places[i]
		}
		if e.Rule == "" || e.Fingerprint == "" || e.Count < 1 {
			return fail(e.at, "an entry must have a rule, a fingerprint and a count above 0")
		}
		if at, seen := index[e.Fingerprint]; seen {
			b.entries[at].Count = max(b.entries[at].Count, e.Count)
			continue
		}
		index[e.Fingerprint] = len(b.entries)
		b.entries = append(b.entries, e)
	}
	return b, nil
}

// entryPlaces returns where the entries are; none where that cannot be told.
func entryPlaces(file string, data []byte) []diag.Range {
	docs := yamldoc.Split(data)
	root, err := docs[0].Tree()
	if err != nil || root == nil {
		return nil
	}
	entries := root.Get("entries")
	if entries == nil {
		return nil
	}
	text := diag.NewText(data)
	var out []diag.Range
	for _, e := range entries.Values {
		out = append(out, diag.Range{Start: text.Pos(file, e.Start), End: text.Pos(file, e.End)})
	}
	return out
}

// Apply returns the findings that the baseline does not know, with a note for each
// entry that it knows more of than there are, sorted, and how many are known. prints
// are those of the findings, in their order. An entry that judged does not pick is
// left alone: nobody looked for it this time.
func (b *Baseline) Apply(findings diag.Findings, prints []fingerprint.Print, judged func(Entry) bool) (left diag.Findings, known int) {
	rest := map[string]int{}
	for _, e := range b.entries {
		rest[e.Fingerprint] = e.Count
	}
	for i, f := range findings {
		if rest[prints[i].Hash] > 0 {
			rest[prints[i].Hash]--
			known++
			continue
		}
		left = append(left, f)
	}
	for _, e := range b.entries {
		n := rest[e.Fingerprint]
		if n == 0 || !judged(e) {
			continue
		}
		message := fmt.Sprintf("the finding of %q", e.Rule)
		if e.Count > 1 {
			message = fmt.Sprintf("%d of the %d findings of %q", n, e.Count, e.Rule)
		}
		if e.File != "" {
			message += fmt.Sprintf(" in %q", e.File)
		}
		if e.Count > 1 && n > 1 {
			message += " are"
		} else {
			message += " is"
		}
		left = append(left, diag.Finding{
			Rule: Gone, Severity: diag.Info, Range: e.at, Message: message + " not there any more; write the baseline again with --write-baseline",
			Related: []diag.Related{{Message: "it was: " + e.Message}},
		})
	}
	return left.Sort(), known
}

// Gone is the rule of an entry without a finding.
const Gone = "baseline/gone"
