package report

import "strings"

// width is that of a terminal, in characters.
const width = 120

// Wrap writes a paragraph in lines of a terminal's width. The first begins with the head, the others as far in.
func Wrap(b *strings.Builder, head, text string) {
	indent := strings.Repeat(" ", len(head))
	if strings.TrimSpace(head) == "" {
		indent += "  "
	}
	b.WriteString(head)
	used := len(head)
	for i, word := range strings.Fields(strings.ReplaceAll(text, " %", "\x00%")) { // a number and its percent sign stay together
		word = strings.ReplaceAll(word, "\x00", " ")
		n := len([]rune(word))
		switch {
		case i == 0:
		case used+1+n > width:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	b.WriteByte('\n')
}
