package report

import (
	"encoding/xml"
	"fmt"
	"io"
)

// The elements of JUnit's XML, as far as CI systems agree on them. There are no times
// in it: the same results are the same bytes.
type (
	xmlSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Suites   []xmlSuite `xml:"testsuite"`
	}
	xmlSuite struct {
		Name       string         `xml:"name,attr"`
		Tests      int            `xml:"tests,attr"`
		Failures   int            `xml:"failures,attr"`
		Errors     int            `xml:"errors,attr"`
		Properties *xmlProperties `xml:"properties"`
		Cases      []xmlCase      `xml:"testcase"`
	}
	xmlProperties struct {
		Properties []xmlProperty `xml:"property"`
	}
	xmlProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	xmlCase struct {
		Name      string      `xml:"name,attr"`
		ClassName string      `xml:"classname,attr"`
		File      string      `xml:"file,attr,omitempty"`
		Line      int         `xml:"line,attr,omitempty"`
		Error     *xmlProblem `xml:"error"`
		Failure   *xmlProblem `xml:"failure"`
		Output    string      `xml:"system-out,omitempty"`
	}
	xmlProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes the suites, and what they add up to.
func writeJUnit(w io.Writer, suites []xmlSuite) error {
	document := xmlSuites{Name: toolName, Suites: suites}
	for _, s := range suites {
		document.Tests, document.Failures, document.Errors = document.Tests+s.Tests, document.Failures+s.Failures, document.Errors+s.Errors
	}
	text, err := xml.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results as XML: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}
