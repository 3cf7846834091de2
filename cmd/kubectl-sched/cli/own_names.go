package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-sched/kubectl-sched/internal/cluster/anonymize"
	"github.com/kubectl-sched/kubectl-sched/internal/cluster/snapshot"
	"github.com/kubectl-sched/kubectl-sched/internal/report"
)

// ownNames is the flag that has a report of an anonymised snapshot say the owner's
// names.
type ownNames struct{ namesFile string }

func (f *ownNames) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.namesFile, "names", "", "File with the names that --anonymize has replaced in the snapshot: say those, and take them on the command line")
}

// words turns the owner's names on a command line into those of the snapshot. The zero
// value leaves them.
type words struct{ names *anonymize.Names }

// Word returns what the snapshot calls it.
func (w words) Word(name string) string {
	if w.names == nil {
		return name
	}
	return w.names.Word(name)
}

// of returns what to call things in the snapshot, and how to write a report of it.
func (f ownNames) of(a *app, s *snapshot.Snapshot) (words, report.Options, error) {
	options := a.reportOptions(a.Out)
	if f.namesFile == "" {
		return words{}, options, nil
	}
	if !s.Anonymized {
		return words{}, options, usageError{fmt.Errorf("--names %s: the snapshot is not anonymised, and says its own names", f.namesFile)}
	}
	names, err := namesIn(f.namesFile)
	if err != nil {
		return words{}, options, err
	}
	options.Names = names.Restore
	return words{names}, options, nil
}

// inWords returns the flags with what the snapshot calls things.
func (f scenarioFlags) inWords(w words) *scenarioFlags {
	if w.names == nil {
		return &f
	}
	each := func(list []string, split func(string) string) []string {
		var out []string
		for _, said := range list {
			out = append(out, split(said))
		}
		return out
	}
	f.drain = each(f.drain, w.Word)
	f.lose = each(f.lose, func(said string) string {
		key, value, ok := strings.Cut(said, "=")
		if !ok {
			return said
		}
		return w.Word(key) + "=" + w.Word(value)
	})
	f.scale = each(f.scale, func(said string) string {
		kind, rest, _ := strings.Cut(said, "/")
		name, n, ok := strings.Cut(rest, "=")
		if !ok {
			return said
		}
		return kind + "/" + w.Word(name) + "=" + n
	})
	f.addNodes = each(f.addNodes, func(said string) string {
		pool, n, ok := strings.Cut(said, "=")
		if !ok {
			return said
		}
		return w.Word(pool) + "=" + n
	})
	return &f
}
