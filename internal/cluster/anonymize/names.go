// Package anonymize replaces the names and values in a snapshot by words that say
// nothing, so that a snapshot can be given away, and everything in it still matches
// what it matched before.
//
// One keyed function makes the word for every string, whatever it names: equal
// strings stay equal wherever they meet, in a label and a selector, in a pod's
// nodeName and a node's name. The package must not know where a snapshot goes.
package anonymize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Names is the key of the function and what its words stand for. Whoever has it can
// read a report about an anonymised snapshot; whoever has not, cannot.
type Names struct {
	key []byte
	// words has the word of each string, originals the other way round.
	words, originals map[string]string
	// types and fields are the rules for what is no name.
	types  map[reflect.Type]rule
	fields map[reflect.Type]map[string]rule
}

func withKey(key []byte) *Names {
	return &Names{key: key, words: map[string]string{}, originals: map[string]string{}, types: typeRules(), fields: fieldRules()}
}

// keyBytes is how long a key is.
const keyBytes = 32

// New returns Names with a key from the source of randomness, and no words.
func New(random io.Reader) (*Names, error) {
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return withKey(key), nil
}

// namesFile is how Names are kept.
type namesFile struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Key        []byte            `json:"key"`
	Names      map[string]string `json:"names"`
}

const (
	namesVersion = "kubectl-sched.github.io/v1alpha1"
	namesKind    = "SnapshotNames"
)

// Read reads Names that Write wrote.
func Read(r io.Reader) (*Names, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var f namesFile
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	if f.APIVersion != namesVersion || f.Kind != namesKind {
		return nil, fmt.Errorf("read names: this is a %s of %s, not a %s of %s", f.Kind, f.APIVersion, namesKind, namesVersion)
	}
	if len(f.Key) != keyBytes {
		return nil, errors.New("read names: the key is damaged")
	}
	n := withKey(f.Key)
	for word, original := range f.Names {
		n.words[original], n.originals[word] = word, original
	}
	return n, nil
}

// Write writes the names, the key among them, as JSON. It is as secret as what was
// replaced.
func (n *Names) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(namesFile{APIVersion: namesVersion, Kind: namesKind, Key: n.key, Names: n.originals})
}

// Original returns what a word of an anonymised snapshot stands for, and whether it
// is one. Of a name in several parts, each part is a word.
func (n *Names) Original(word string) (string, bool) {
	original, ok := n.originals[word]
	return original, ok
}

// Word returns the word that stands for a name of the owner's, and the name itself
// where it was not replaced.
func (n *Names) Word(original string) string {
	if word, ok := n.words[original]; ok {
		return word
	}
	return original
}

// wordForm is what words look like, wherever they stand in a text.
var wordForm = regexp.MustCompile(`\bx[0-9a-f]{16}\b`)

// Restore returns the text with every word in it replaced by what it stands for.
func (n *Names) Restore(text string) string {
	return wordForm.ReplaceAllStringFunc(text, func(word string) string {
		if original, ok := n.originals[word]; ok {
			return original
		}
		return word
	})
}

// word returns the word for a string as a whole. It begins with a letter, and can
// stand for a name, a label's value and a part of a label's key.
func (n *Names) word(s string) string {
	if w, ok := n.words[s]; ok {
		return w
	}
	h := hmac.New(sha256.New, n.key)
	h.Write([]byte(s))
	w := "x" + hex.EncodeToString(h.Sum(nil)[:8])
	n.words[s], n.originals[w] = w, s
	return w
}

// uid returns a UID for a UID: those of a snapshot that was written by hand follow
// from names.
func (n *Names) uid(u types.UID) types.UID {
	if u == "" {
		return ""
	}
	h := hmac.New(sha256.New, n.key)
	h.Write([]byte("uid\x00" + string(u)))
	s := h.Sum(nil)
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16]))
}

// name returns the words for a name, part by part between slashes.
func (n *Names) name(s string) string {
	if plain(s) {
		return s
	}
	if !strings.Contains(s, "/") {
		return n.word(s)
	}
	parts := strings.Split(s, "/")
	for i, part := range parts {
		if !plain(part) {
			parts[i] = n.word(part)
		}
	}
	return strings.Join(parts, "/")
}
