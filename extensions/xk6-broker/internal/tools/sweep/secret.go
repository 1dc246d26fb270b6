package sweep

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
)

const hidden = "xxxxx"

// secretWords are in the names of what nobody else should see.
const secretWords = `(?:pass|pwd|secret|token|credential|(?:access|api|private|account|auth)[_-]?key)` //gosec:disable G101 -- words, and no secret

var (
	// password is that of a user in a URL; what is malformed is hidden up to its last @.
	password = regexp.MustCompile(`(://[^/?#@:\s]*):[^\s]*@`)
	// token is a user without a password, which is a token to some brokers.
	token      = regexp.MustCompile(`(://)[^/?#:\s]+@`)
	secretName = regexp.MustCompile(`(?i)` + secretWords)
	// environmentFlag is what stands before NAME=VALUE in one argument of k6.
	environmentFlag = regexp.MustCompile(`^(?:--env=|-e=?)`)
	// assigned is NAME=VALUE, as of an option in a URL's query, in a shell command or behind -e, and --name VALUE.
	assigned = regexp.MustCompile(`(?i)((?:^|[?&;,\s'"]|-e)[^=&;,\s]*` + secretWords + `[^=&;,\s]*=|\s--?[\w-]*` + secretWords + `[\w-]*\s+)('[^']*'|"[^"]*"|[^&;#\s]+)`)
)

// Shown is a text without what it holds of secrets, as far as that can be told: passwords and tokens in URLs, and values whose names say what they are.
func Shown(text string) string {
	text = token.ReplaceAllString(password.ReplaceAllString(text, "$1:"+hidden+"@"), "${1}"+hidden+"@")
	return assigned.ReplaceAllString(text, "${1}"+hidden)
}

// shownAs is the value of a name without secrets.
func shownAs(name, value string) string {
	if value != "" && secretName.MatchString(name) {
		return hidden
	}
	return Shown(value)
}

// shownArgs are arguments of k6 in a line.
func shownArgs(args []string) string {
	all := make([]string, len(args))
	for i, arg := range args {
		flag := environmentFlag.FindString(arg)
		if name, value, ok := strings.Cut(arg[len(flag):], "="); ok {
			all[i] = flag + Shown(name) + "=" + shownAs(name, value)
		} else {
			all[i] = Shown(arg)
		}
	}
	return strings.Join(all, " ")
}

// compared is what is shown of a text, with two bytes of a hash where that hides something: enough to notice that it is another one, and too little to find
// out what it is.
func compared(text, shown string) string {
	if text == shown {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s (check %x)", shown, sum[:2])
}
