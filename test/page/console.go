package page

import (
	"fmt"
	"strings"
)

// Command is a command of a console block.
type Command struct {
	// Text is the command as it stands there, with its line breaks.
	Text string
	// Says is what the page says that it prints.
	Says string
}

// Console is the block's language where it holds commands, each behind "$ ", with what
// they print.
const Console = "console"

// Commands returns the commands of a console block. One that ends in a backslash goes on
// in the next line.
func (b Block) Commands() (all []Command) {
	for line := range strings.Lines(b.Text) {
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case begins:
			all = append(all, Command{Text: command})
		case len(all) == 0:
			all = append(all, Command{Says: line}) // it is nobody's output
		case all[len(all)-1].Says == "" && strings.HasSuffix(all[len(all)-1].Text, "\\\n"):
			all[len(all)-1].Text += line
		default:
			all[len(all)-1].Says += line
		}
	}
	return all
}

// Change makes the change of a diff block in a text: the lines with + come in the place of
// those with -, which must be there once, together with those around them.
func (b Block) Change(text string) (string, error) {
	var before, after strings.Builder
	for line := range strings.Lines(b.Text) {
		sign, rest := line[:1], line[1:]
		if sign != "+" {
			before.WriteString(rest)
		}
		if sign != "-" {
			after.WriteString(rest)
		}
	}
	if strings.Count(text, before.String()) != 1 {
		return "", fmt.Errorf("%s does not have these lines once:\n%s\nbut is\n%s", b.Title, before.String(), text)
	}
	return strings.Replace(text, before.String(), after.String(), 1), nil
}
