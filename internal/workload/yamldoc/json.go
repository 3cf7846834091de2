package yamldoc

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep a document may nest.
const maxDepth = 1000

// parseJSON returns the tree of a JSON document.
func (d Doc) parseJSON() (*Node, *Problem) {
	p := jsonParser{src: d.src[:d.End], at: d.Start}
	if isMarker(d.Text(), "---") {
		p.at += len("---")
	}
	p.space()
	n, err := p.value(0)
	if err == nil {
		p.space()
		if p.at != d.End {
			err = fmt.Errorf("something follows the JSON value")
		}
	}
	if err != nil {
		line, column := d.Position(p.at)
		return nil, &Problem{line, column, "this is not JSON: " + err.Error()}
	}
	return n, nil
}

type jsonParser struct {
	src []byte
	at  int
}

func (p *jsonParser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *jsonParser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *jsonParser) value(depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	switch c := p.peek(); c {
	case '{', '[':
		return p.collection(c, depth)
	case '"':
		return p.str()
	default:
		return p.word()
	}
}

func (p *jsonParser) collection(open byte, depth int) (*Node, error) {
	n := &Node{Kind: Sequence, Flow: true, Start: p.at, Body: p.at}
	end := byte(']')
	if open == '{' {
		n.Kind, end = Mapping, '}'
	}
	p.at++
	p.space()
	for first := true; p.peek() != end; first = false {
		if !first {
			if p.peek() != ',' {
				return nil, fmt.Errorf("a %q or %q is missing", ',', end)
			}
			p.at++
			p.space()
		}
		if open == '{' {
			if p.peek() != '"' {
				return nil, fmt.Errorf("a key in quotes is missing")
			}
			k, err := p.str()
			if err != nil {
				return nil, err
			}
			n.Keys = append(n.Keys, k)
			p.space()
			if p.peek() != ':' {
				return nil, fmt.Errorf("a %q is missing", ':')
			}
			p.at++
			p.space()
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Values = append(n.Values, v)
		p.space()
	}
	p.at++
	n.End = p.at
	return n, nil
}

func (p *jsonParser) str() (*Node, error) {
	start, plain := p.at, true
	for p.at++; ; p.at++ {
		switch c := p.peek(); {
		case c == 0 && p.at >= len(p.src):
			p.at = start
			return nil, fmt.Errorf("the string does not end")
		case c < 0x20:
			return nil, fmt.Errorf("the string has a control character that is not escaped")
		case c == '\\':
			plain = false
			p.at++
		case c == '"':
			p.at++
			n := &Node{Kind: Scalar, Style: Double, Start: start, Body: start, End: p.at}
			if inner := p.src[start+1 : p.at-1]; plain && utf8.Valid(inner) {
				n.Value = string(inner)
				return n, nil
			}
			var s string
			if err := json.Unmarshal(p.src[start:p.at], &s); err != nil {
				p.at = start
				return nil, fmt.Errorf("the string is not valid")
			}
			n.Value = s
			return n, nil
		}
	}
}

// word parses a number, true, false or null.
func (p *jsonParser) word() (*Node, error) {
	start := p.at
	for p.at < len(p.src) {
		if c := p.src[p.at]; c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			p.at++
			continue
		}
		break
	}
	text := p.src[start:p.at]
	n := &Node{Kind: Scalar, Start: start, Body: start, End: p.at}
	if !json.Valid(text) {
		p.at = start
		return nil, fmt.Errorf("a value is missing")
	}
	switch string(text) {
	case "true":
		n.Value = true
	case "false":
		n.Value = false
	case "null":
	default:
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			n.Value = i
			break
		}
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			p.at = start
			return nil, fmt.Errorf("the number is too large")
		}
		n.Value = f
	}
	return n, nil
}
