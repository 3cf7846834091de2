package yamldoc

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// floatPattern is what YAML 1.1 calls a float in base ten.
var floatPattern = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// ResolvePlain returns what a plain (unquoted) scalar means to kubectl: nil, a
// bool, an int64, a float64 or, failing all, the string itself. Its rules are
// those of YAML 1.1 ("yes", "off" and "0777" are no strings), except that
// timestamps stay strings and that there are no numbers to the base 60.
func ResolvePlain(s string) any {
	if s == "" {
		return nil
	}
	switch c := s[0]; {
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0:
		switch s {
		case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
			return true
		case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
			return false
		case "~", "null", "Null", "NULL":
			return nil
		}
		return s
	case c == '.':
		switch s {
		case ".nan", ".NaN", ".NAN":
			return math.NaN()
		case ".inf", ".Inf", ".INF":
			return math.Inf(1)
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return number(f)
		}
		return s
	case c == '+' || c == '-' || c >= '0' && c <= '9':
		return resolveNumber(s)
	}
	return s
}

func resolveNumber(s string) any {
	switch s {
	case "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	if isTimestamp(s) {
		return s
	}
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return float64(u)
	}
	if floatPattern.MatchString(plain) {
		if f, err := strconv.ParseFloat(plain, 64); err == nil {
			return number(f)
		}
	}
	if rest, ok := strings.CutPrefix(plain, "0b"); ok {
		if i, err := strconv.ParseInt(rest, 2, 64); err == nil {
			return i
		}
	}
	return s
}

// number returns f as the API machinery has it: whole numbers are integers.
func number(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return f
}

// isTimestamp reports whether s is a date, which must not become a number.
func isTimestamp(s string) bool {
	return timestampPattern.MatchString(s)
}

var timestampPattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ]|$)`)

// resolveTagged returns what a scalar with an explicit tag means.
func resolveTagged(tag, s string) (any, error) {
	switch tag {
	case "!!str":
		return s, nil
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not base64", s)
		}
		return string(b), nil
	case "!!null", "!!bool", "!!int", "!!float", "!!timestamp":
		v := ResolvePlain(s)
		if found := tagOf(v); found == tag || tag == "!!float" && found == "!!int" || tag == "!!timestamp" {
			return v, nil
		}
		return nil, fmt.Errorf("%q is not a %s", s, strings.TrimPrefix(tag, "!!"))
	}
	return s, nil
}

// tagOf is the tag that a scalar value has in YAML.
func tagOf(v any) string {
	switch v.(type) {
	case nil:
		return "!!null"
	case bool:
		return "!!bool"
	case int64:
		return "!!int"
	case float64:
		return "!!float"
	}
	return "!!str"
}

// keyString returns the string that a scalar used as a key becomes in JSON.
func keyString(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("a key must be a string")
}

// PlainSafe reports whether s, written without quotes on one line, means the
// string s to every YAML reader, whatever context (block or flow) it stands in.
func PlainSafe(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	if _, ok := ResolvePlain(s).(string); !ok || isTimestamp(s) || s == "<<" || s == "=" {
		return false
	}
	if special12.MatchString(s) {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '/':
		case c == '-':
			if i == 0 {
				return false
			}
		case c == ' ':
			if i == 0 || i == len(s)-1 {
				return false
			}
		case c == '+', c == '=', c == '(', c == ')', c == ';', c == '~', c == '^', c == '$', c == '<':
			if i == 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// special12 are words that other YAML readers take for numbers or booleans.
var special12 = regexp.MustCompile(`^([-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|0o[0-7]+|[-+]?[0-9_.]+([eE][-+]?[0-9_]+)?|[yYnN])$`)
