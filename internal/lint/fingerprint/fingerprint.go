// Package fingerprint tells findings apart across runs and revisions.
//
// It maps findings to short texts that stay the same while the finding does:
// whatever line it has moved to, on whatever machine, and whatever nodes its
// message names today. The package must not know formats, nor what anybody
// concludes from two prints being the same.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// Print is the fingerprint of one finding.
type Print struct {
	// Hash is the same for findings that nothing but their order tells apart.
	Hash string
	// Occurrence counts those of one list from 1, in the order of the list.
	Occurrence int
}

// String returns "hash:occurrence", which no other finding of the list has.
func (p Print) String() string { return fmt.Sprintf("%s:%d", p.Hash, p.Occurrence) }

// Sources says how the files of findings are named and read.
type Sources struct {
	// Name returns the name of a file that is the same on every machine, such as
	// that relative to the repository; nil leaves the names alone.
	Name func(file string) string
	// Read returns the text of a file; false if there is none. It may be nil.
	Read func(file string) ([]byte, bool)
}

// Of returns the prints of the findings, in their order. A print is made of the
// rule, the file, the policy, else the subject, and the text of the line, but for its
// white space. What a policy is told of one workload is the same when it selects one
// more. The message is left out: it says how many nodes there are and names them,
// and its wording gets better.
func Of(findings diag.Findings, s Sources) []Print {
	prints := make([]Print, len(findings))
	texts := map[string]*diag.Text{}
	seen := map[string]int{}
	for i, f := range findings {
		file := f.Range.Start.File
		name := file
		if s.Name != nil && file != "" {
			name = s.Name(file)
		}
		subject := f.Subject
		if f.Policy != "" {
			subject = ""
		}
		parts := []string{f.Rule, name, f.Policy, subject, s.line(texts, f.Range.Start)}
		h := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(h, "%d:%s\n", len(part), part)
		}
		hash := hex.EncodeToString(h.Sum(nil)[:hashBytes])
		seen[hash]++
		prints[i] = Print{Hash: hash, Occurrence: seen[hash]}
	}
	return prints
}

// hashBytes is how much of the hash is kept: with 64 bits the chance that any two of a
// million findings are taken for one is below one in ten million.
const hashBytes = 8

// line returns the text of the line, empty where it is not known.
func (s Sources) line(texts map[string]*diag.Text, p diag.Pos) string {
	if s.Read == nil || p.Line == 0 {
		return ""
	}
	text, known := texts[p.File]
	if !known {
		if data, ok := s.Read(p.File); ok {
			text = diag.NewText(data)
		}
		texts[p.File] = text
	}
	if text == nil {
		return ""
	}
	line, _ := text.Line(p.Line)
	return strings.Join(strings.Fields(line), " ")
}
