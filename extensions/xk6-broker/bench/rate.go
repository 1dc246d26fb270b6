package bench

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// Best reads the greatest of the rates that a tool reports, each the first group of a pattern: of the first so many reports, or of all
// if that is 0. What it reported before it was warm does not count then.
func Best(pattern string, reports int) func(output io.Reader) (float64, error) {
	expression := regexp.MustCompile(pattern)
	return func(output io.Reader) (float64, error) {
		all, err := reported(output, expression, reports)
		if err != nil {
			return 0, err
		}
		return slices.Max(all), nil
	}
}

// Last reads the last of the rates that a tool reports, each the first group of a pattern.
func Last(pattern string) func(output io.Reader) (float64, error) {
	expression := regexp.MustCompile(pattern)
	return func(output io.Reader) (float64, error) {
		all, err := reported(output, expression, 0)
		if err != nil {
			return 0, err
		}
		return all[len(all)-1], nil
	}
}

// reported reads one rate at least. No line has two of them.
func reported(output io.Reader, expression *regexp.Regexp, most int) (all []float64, err error) {
	lines := bufio.NewScanner(output)
	for (most == 0 || len(all) < most) && lines.Scan() {
		found := expression.FindSubmatch(lines.Bytes())
		if found == nil {
			continue
		}
		rate, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("rate: %w", err)
		}
		all = append(all, rate)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no line like %q", expression)
	}
	return all, nil
}
