package nodeexpr_test

import (
	"flag"
	"testing"
)

// TestMain raises the number of cases that every property is tried on, which
// by default are a hundred.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && !testing.Short() {
		if err := flag.Set("rapid.checks", "5000"); err != nil {
			panic(err)
		}
	}
	m.Run()
}
