package setup

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/escaped"
)

// mcpJSON is an mcp.json with one server.
func mcpJSON(id string, server map[string]any) []byte {
	b, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{id: server}}) // of texts alone
	return b
}

var (
	// ErrUnanswered says that a question had no answer.
	ErrUnanswered = errors.New("no terminal to ask on: use --from, --server and --grant")
	// ErrUnwanted says that a person wants nothing written.
	ErrUnwanted = errors.New("nothing was written")
)

// A talk is questions to a person, and their answers.
type talk struct {
	in  *bufio.Reader
	out io.Writer
}

// ask puts one question. An empty answer is the usual one.
func (t talk) ask(usual, format string, args ...any) (string, error) {
	question := escaped.Text(fmt.Sprintf(format, args...))
	if usual != "" {
		question += " [" + usual + "]"
	}
	fmt.Fprint(t.out, question+": ")
	line, err := t.in.ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(t.out)
		return "", ErrUnanswered
	}
	if line = strings.TrimSpace(line); line == "" {
		line = usual
	}
	return line, nil
}

func (t talk) yes(usual, format string, args ...any) (bool, error) {
	answer, err := t.ask(usual, format, args...)
	return strings.HasPrefix(strings.ToLower(answer), "y"), err
}

// some lets a person choose among names, until all that they write are among them.
func (t talk) some(names []string, format string, args ...any) ([]string, error) {
	for {
		answer, err := t.ask("all", format, args...)
		switch {
		case err != nil:
			return nil, err
		case answer == "all":
			return names, nil
		case answer == "none":
			return nil, nil
		}
		chosen := strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
		wrong := slices.DeleteFunc(slices.Clone(chosen), func(name string) bool { return slices.Contains(names, name) })
		if len(wrong) == 0 {
			return chosen, nil
		}
		fmt.Fprintln(t.out, escaped.Text(fmt.Sprintf("not among them: %s", strings.Join(wrong, ", "))))
	}
}

// Ask asks a person what they want of the servers that their clients have; there is whether the
// file has something already. It returns the plan, and the files that servers come from.
func Ask(in io.Reader, out io.Writer, file string, there bool, sources []Source) (p Plan, from []Source, err error) {
	t := talk{bufio.NewReader(in), out}
	if there {
		if add, err := t.yes("n", "%s exists; add servers to it?", file); err != nil || !add {
			return p, nil, errors.Join(err, unless(add))
		}
	}
	if from, err = t.sources(sources); err != nil {
		return p, nil, err
	}
	merged, notes := Merged(from)
	for _, note := range notes {
		fmt.Fprintln(t.out, escaped.Text(note))
	}
	if p.Servers, err = t.servers(merged); err != nil {
		return p, nil, err
	}
	if len(p.Servers) == 0 {
		return p, nil, fmt.Errorf("no server was named; %w", ErrUnwanted)
	}
	if tokens := p.tokens(); len(tokens) > 0 {
		vault, err := t.yes("y", "Found tokens (%s). Store them in the vault, encrypted? Answer n to leave them in %s, readable only by you", strings.Join(tokens, ", "), file)
		if err != nil {
			return p, nil, err
		}
		p.Tokens = !vault
	}
	if p.Granted, err = t.some(IDs(p.Servers), "Servers from which to grant yourself the tools that only read? Names, all or none"); err != nil {
		return p, nil, err
	}
	p.Arguments, err = t.yes("n", "Store arguments and results for 14 days, encrypted? You need this to test policy changes against past calls")
	return p, from, err
}

func unless(wanted bool) error {
	if wanted {
		return nil
	}
	return ErrUnwanted
}

// IDs are the names of servers.
func IDs(servers []config.Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.ID)
	}
	return all
}

// sources lets a person choose among files of clients.
func (t talk) sources(all []Source) (chosen []Source, err error) {
	if len(all) == 0 {
		fmt.Fprintln(t.out, "No client has servers here.")
		return nil, nil
	}
	var numbers []string
	for i, s := range all {
		numbers = append(numbers, strconv.Itoa(i+1))
		fmt.Fprintln(t.out, escaped.Text(fmt.Sprintf("%3d  %s, %s: %s", i+1, s.Client, s.File, strings.Join(IDs(s.Servers), ", "))))
	}
	picked, err := t.some(numbers, "Servers of which clients? Numbers, all or none")
	for i, s := range all {
		if slices.Contains(picked, numbers[i]) {
			chosen = append(chosen, s)
		}
	}
	return chosen, err
}

// servers lets a person choose among servers, and name others.
func (t talk) servers(known []config.Server) (chosen []config.Server, err error) {
	if len(known) > 0 {
		names, err := t.some(IDs(known), "Which of %s? Names, all or none", strings.Join(IDs(known), ", "))
		if err != nil {
			return nil, err
		}
		chosen = slices.DeleteFunc(known, func(s config.Server) bool { return !slices.Contains(names, s.ID) })
	}
	for {
		line, err := t.ask("", "Another server, as NAME=COMMAND WORD... or NAME=https://...; an empty line goes on")
		if err != nil || line == "" {
			return chosen, err
		}
		one, err := Own(line)
		if err == nil && slices.Contains(IDs(chosen), one.ID) {
			err = fmt.Errorf("there is a server %s already", one.ID)
		}
		if err != nil {
			fmt.Fprintln(t.out, escaped.Text(err.Error()))
			continue
		}
		chosen = append(chosen, one)
	}
}
