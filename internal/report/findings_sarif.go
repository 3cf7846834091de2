package report

import (
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/kubectl-sched/kubectl-sched/policy/diag"
)

// The parts of SARIF 2.1.0 that findings need, named as the specification names
// them.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string        `json:"id"`
		ShortDescription *sarifMessage `json:"shortDescription,omitempty"`
		HelpURI          string        `json:"helpUri,omitempty"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		RuleIndex           int               `json:"ruleIndex"`
		Level               string            `json:"level"`
		Message             sarifMessage      `json:"message"`
		Locations           []sarifLocation   `json:"locations,omitempty"`
		RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
		Fixes               []sarifFix        `json:"fixes,omitempty"`
		// Suppressions are there for all results of a run, or for none.
		Suppressions *[]sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string         `json:"kind"`
		Justification string         `json:"justification"`
		Location      *sarifLocation `json:"location,omitempty"`
	}
	sarifLocation struct {
		ID               int            `json:"id,omitempty"`
		PhysicalLocation *sarifPhysical `json:"physicalLocation,omitempty"`
		LogicalLocations []sarifLogical `json:"logicalLocations,omitempty"`
		Message          *sarifMessage  `json:"message,omitempty"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	sarifFix struct {
		Description     sarifMessage  `json:"description"`
		ArtifactChanges []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		ArtifactLocation sarifArtifact      `json:"artifactLocation"`
		Replacements     []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		DeletedRegion   sarifRegion   `json:"deletedRegion"`
		InsertedContent *sarifMessage `json:"insertedContent,omitempty"`
	}
)

const (
	sarifVersion = "2.1.0"
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	// sarifRoot is the usual name of the folder that URIs are relative to; code
	// scanning takes it for the root of the repository.
	sarifRoot = "%SRCROOT%"
	// sarifPrint is the one fingerprint that GitHub's code scanning looks at.
	sarifPrint = "primaryLocationLineHash"
)

// findingsSARIF writes one run. Columns count UTF-16 code units, which is what
// SARIF takes them for if nothing is said.
func findingsSARIF(w io.Writer, findings diag.Findings, o Options) error {
	s := sarif{o: o, texts: o.texts()}
	open := len(findings)
	findings = slices.Clone(findings)
	for _, i := range o.Ignored {
		findings = append(findings, i.Finding)
	}
	ids := map[string]bool{}
	for _, f := range findings {
		ids[f.Rule] = true
	}
	driver := sarifDriver{Name: toolName, Version: o.Version, InformationURI: toolURI, Rules: []sarifRule{}}
	index := map[string]int{}
	for i, id := range slices.Sorted(maps.Keys(ids)) {
		index[id] = i
		doc := o.rule(id)
		rule := sarifRule{ID: id, HelpURI: doc.HelpURI}
		if doc.Short != "" {
			rule.ShortDescription = &sarifMessage{doc.Short}
		}
		driver.Rules = append(driver.Rules, rule)
	}
	prints := o.prints(findings)
	results := make([]sarifResult, 0, len(findings))
	for i, f := range findings {
		r := sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: "note", Message: sarifMessage{sentence(f)},
			PartialFingerprints: map[string]string{sarifPrint: prints[i].String()},
			Fixes:               s.fixes(f.Fix),
		}
		if f.Severity != diag.Info {
			r.Level = string(f.Severity)
		}
		location := sarifLocation{PhysicalLocation: s.physical(f.Range)}
		if f.Subject != "" {
			location.LogicalLocations = []sarifLogical{{FullyQualifiedName: f.Subject, Kind: "resource"}}
		}
		if location.PhysicalLocation != nil || location.LogicalLocations != nil {
			r.Locations = []sarifLocation{location}
		}
		for n, related := range f.Related {
			r.RelatedLocations = append(r.RelatedLocations, sarifLocation{
				ID: n + 1, PhysicalLocation: s.physical(related.Range), Message: &sarifMessage{related.Message},
			})
		}
		if len(o.Ignored) > 0 {
			r.Suppressions = &[]sarifSuppression{}
		}
		if i >= open {
			ignored := o.Ignored[i-open]
			r.Suppressions = &[]sarifSuppression{{Kind: "inSource", Justification: ignored.Reason}}
			if at := s.physical(ignored.Range); at != nil {
				(*r.Suppressions)[0].Location = &sarifLocation{PhysicalLocation: at}
			}
		}
		results = append(results, r)
	}
	return writeJSON(w, sarifLog{
		Schema: sarifSchema, Version: sarifVersion,
		Runs: []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "utf16CodeUnits", Results: results}},
	})
}

// sarif turns places into SARIF's.
type sarif struct {
	o     Options
	texts func(string) *diag.Text
}

// physical is nil for what is in no file.
func (s sarif) physical(r diag.Range) *sarifPhysical {
	if !r.Start.IsValid() || r.Start.File == stdin {
		return nil
	}
	return &sarifPhysical{ArtifactLocation: s.artifact(r.Start.File), Region: s.region(r)}
}

func (s sarif) artifact(file string) sarifArtifact {
	name, inside := s.o.inRepository(file)
	switch {
	case inside:
		return sarifArtifact{URI: (&url.URL{Path: name}).String(), URIBaseID: sarifRoot}
	case strings.HasPrefix(name, "/"):
		return sarifArtifact{URI: (&url.URL{Scheme: "file", Path: name}).String()}
	case len(name) > 1 && name[1] == ':': // a drive of Windows
		return sarifArtifact{URI: (&url.URL{Scheme: "file", Path: "/" + name}).String()}
	}
	return sarifArtifact{URI: (&url.URL{Path: name}).String()}
}

// region is nil where only the file is known. Without an end it reaches to the end
// of the line.
func (s sarif) region(r diag.Range) *sarifRegion {
	if r.Start.Line == 0 {
		return nil
	}
	text := s.texts(r.Start.File)
	out := &sarifRegion{StartLine: r.Start.Line, StartColumn: characters(text, r.Start, utf16Width)}
	switch {
	case r.End.Line == 0:
		return out
	case out.StartColumn == 0:
		if r.End.Line > r.Start.Line {
			out.EndLine = r.End.Line
		}
		return out
	}
	if end := characters(text, r.End, utf16Width); end > 0 {
		out.EndLine, out.EndColumn = r.End.Line, end
	}
	return out
}

// fixes returns the fix with its edits by file; none where it has no edits, or one
// of them is at a place that cannot be said.
func (s sarif) fixes(fix *diag.Fix) []sarifFix {
	if fix == nil || len(fix.Edits) == 0 {
		return nil
	}
	var changes []sarifChange
	at := map[string]int{}
	for _, e := range fix.Edits {
		if !e.Range.End.IsValid() && e.Range.End.Line == 0 {
			e.Range.End = e.Range.Start
		}
		region := s.region(e.Range)
		if region == nil || region.EndColumn == 0 {
			return nil
		}
		file := e.Range.Start.File
		if _, seen := at[file]; !seen {
			at[file] = len(changes)
			changes = append(changes, sarifChange{ArtifactLocation: s.artifact(file)})
		}
		replacement := sarifReplacement{DeletedRegion: *region}
		if e.NewText != "" {
			replacement.InsertedContent = &sarifMessage{e.NewText}
		}
		changes[at[file]].Replacements = append(changes[at[file]].Replacements, replacement)
	}
	return []sarifFix{{Description: sarifMessage{fix.Message}, ArtifactChanges: changes}}
}
