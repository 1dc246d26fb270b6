package result

import (
	"fmt"
	"strings"
)

// severalTopics is of how many topics the same is said at least before it is said of all of them together.
const severalTopics = 3

// Once are reasons, notes or doubts as people read them: what is said of several topics, in words that differ in their numbers alone, is said once, as it is of
// the topic where it is worst.
func (r *Result) Once(sentences []string) []string {
	names := map[string]bool{}
	for i := range r.Topics {
		names[r.Topics[i].Topic] = true
	}
	type same struct {
		topics map[string]bool
		worst  *told // what follows the topic's name, of which sentence
		differ bool
		over   bool // it has been said
	}
	kinds, of := map[string]*same{}, make([]*same, len(sentences))
	for i, sentence := range sentences {
		topic := beginning(sentence)
		if !names[topic] {
			continue
		}
		text := sentence[len(topic):]
		all := kinds[kindOf(text)]
		if all == nil {
			all = &same{topics: map[string]bool{}}
			kinds[kindOf(text)] = all
		}
		all.differ = all.differ || all.worst != nil && all.worst.text != text
		all.worst = all.worst.with(i, text)
		all.topics[topic] = true
		of[i] = all
	}
	var once []string
	for i, sentence := range sentences {
		all := of[i]
		switch {
		case all == nil || len(all.topics) < severalTopics:
			once = append(once, sentence)
		case !all.over:
			where := fmt.Sprintf("%d topics", len(all.topics))
			if len(all.topics) < len(names) {
				where = fmt.Sprintf("%d of %d topics", len(all.topics), len(names))
			}
			if all.differ {
				where += ", worst in " + beginning(sentences[all.worst.by])
			}
			once = append(once, where+all.worst.text)
			all.over = true
		}
	}
	return once
}

// beginning is where the name of a sentence's topic is, if it has one: before the group's, where it is of a group.
func beginning(sentence string) string {
	whose, _, _ := strings.Cut(sentence, ": ")
	topic, _, _ := strings.Cut(whose, ", ")
	return topic
}
