package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed glossary.json
var glossaryText []byte

// glossary has the meaning of each word in the tables of the terminal and the page.
var glossary = func() (words map[string]string) {
	if err := json.Unmarshal(glossaryText, &words); err != nil {
		panic(err) // it is part of the program
	}
	return words
}()

// meaning returns the meaning of the longest word in a label; "" if it has none.
func meaning(label string) string {
	longest := ""
	for word := range glossary {
		if strings.Contains(label, word) && len(word) > len(longest) {
			longest = word
		}
	}
	return glossary[longest]
}

// Explain returns the meaning of a word, or of all without one.
func Explain(word string) (string, error) {
	words := slices.Sorted(maps.Keys(glossary))
	if text, ok := glossary[strings.ToLower(word)]; ok {
		return text, nil
	}
	if word != "" {
		return "", fmt.Errorf("no word %q: there are %s", word, strings.Join(words, ", "))
	}
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "%s: %s\n", w, glossary[w])
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
