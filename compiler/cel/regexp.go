package cel

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// regularExpression returns the RE2 expression of a glob: of the strings without
// a "/", it matches those that path.Match does.
func regularExpression(glob string) (string, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return "", fmt.Errorf("glob %q: %w", glob, err)
	}
	var re strings.Builder
	re.WriteString("(?s)^")
	for rest := glob; rest != ""; {
		c, size := utf8.DecodeRuneInString(rest)
		switch c {
		case '*':
			re.WriteString(".*")
		case '?':
			re.WriteString(".")
		case '[':
			var class string
			class, rest = characterClass(rest[size:])
			re.WriteString(class)
			continue
		case '\\':
			rest = rest[size:]
			c, size = utf8.DecodeRuneInString(rest)
			re.WriteString(regexp.QuoteMeta(string(c)))
		default:
			re.WriteString(regexp.QuoteMeta(string(c)))
		}
		rest = rest[size:]
	}
	re.WriteByte('$')
	return re.String(), nil
}

// characterClass returns the RE2 class for the ranges of a glob, which is well
// formed and stands behind its "[", and what follows its "]".
func characterClass(rest string) (class, after string) {
	rest, negated := strings.CutPrefix(rest, "^")
	var ranges strings.Builder
	character := func() rune {
		rest = strings.TrimPrefix(rest, `\`)
		c, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		return c
	}
	for first := true; first || !strings.HasPrefix(rest, "]"); first = false {
		low := character()
		high := low
		if strings.HasPrefix(rest, "-") {
			rest = rest[1:]
			high = character()
		}
		// path.Match takes a range that is the wrong way round for an empty one.
		if low <= high {
			fmt.Fprintf(&ranges, `\x{%x}-\x{%x}`, low, high)
		}
	}
	after = strings.TrimPrefix(rest, "]")
	const all = `\x{0}-\x{10ffff}`
	switch {
	case ranges.Len() == 0 && negated:
		return "[" + all + "]", after
	case ranges.Len() == 0:
		return "[^" + all + "]", after
	case negated:
		return "[^" + ranges.String() + "]", after
	}
	return "[" + ranges.String() + "]", after
}
