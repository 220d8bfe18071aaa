package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/policy/internal/input"
	"github.com/wasmgate/wasmgate/policy/internal/tables"
)

// single are the obligations that are one member, with what reads it.
var single = map[string]func(ast.Value) (obligation.Obligation, error){
	"sandbox": narrowing, "credential": credential, "redact": redact, "rate": Rate, "record": record, "approve": approve,
}

// eachMember gives read the members of an obligation, which is an object with at least as many
// members as least says. An error of read is returned with the name of its member.
func eachMember(obligation, shape string, least int, v ast.Value, read func(name string, v ast.Value) error) error {
	o, ok := v.(ast.Object)
	if !ok || o.Len() < least {
		return fmt.Errorf("expected %s, %s", obligation, shape)
	}
	return o.Iter(func(k, v *ast.Term) error {
		name, _ := k.Value.(ast.String)
		if err := read(string(name), v.Value); err != nil {
			return fmt.Errorf("%s.%s: %w", obligation, strings.Trim(k.String(), `"`), err)
		}
		return nil
	})
}

var errMember = errors.New("unknown member of the obligation; check its spelling")

// maxRedacted bounds the pointers of one redaction. Each is looked for in the document
// and in the JSON in its texts.
const maxRedacted = 64

// redact reads the places whose values are taken out.
func redact(v ast.Value) (obligation.Obligation, error) {
	var r obligation.Redact
	err := eachMember("redact", "an object of arguments, result or both", 1, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "arguments":
			r.Arguments, err = pointers(v, "/")
		case "result":
			r.Result, err = pointers(v, "/structuredContent/", "/content/")
		default:
			err = errMember
		}
		return err
	})
	return r, err
}

// pointers reads a list or set of JSON Pointers that begin with one of the given.
func pointers(v ast.Value, begin ...string) ([]string, error) {
	list, err := names(v, func(s string) error {
		if !slices.ContainsFunc(begin, func(b string) bool { return strings.HasPrefix(s, b) }) {
			return fmt.Errorf("expected a JSON Pointer that begins with %s", strings.Join(begin, " or "))
		}
		for rest := s; ; {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				return nil
			}
			if !strings.HasPrefix(after, "0") && !strings.HasPrefix(after, "1") {
				return errors.New("in a JSON Pointer ~ is written ~0, and / in a name ~1 (RFC 6901, section 3)")
			}
			rest = after
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, errors.New("expected at least one JSON Pointer")
	case len(list) > maxRedacted:
		return nil, fmt.Errorf("%d pointers are more than %d", len(list), maxRedacted)
	}
	return list, nil
}

// Bounds of a rate: its numbers are added up in floating point.
const (
	maxRate     = 1 << 40
	minRateTime = time.Millisecond
	maxRateTime = 1000 * time.Hour
)

// Rate reads how many calls or bytes there may be in a time.
func Rate(v ast.Value) (obligation.Obligation, error) {
	var r obligation.Rate
	err := eachMember("rate", "an object", 0, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "name":
			text, _ := v.(ast.String)
			if r.Name = string(text); text == "" || len(text) > 64 {
				err = errors.New("expected a name of at most 64 bytes")
			}
		case "key":
			r.Key, err = rateKeys(v)
		case "calls":
			r.Calls, err = amount(v)
		case "bytes":
			r.Bytes, err = amount(v)
		case "burst":
			r.Burst, err = amount(v)
		case "per":
			text, _ := v.(ast.String)
			if r.Per, err = time.ParseDuration(string(text)); err != nil || r.Per < minRateTime || r.Per > maxRateTime {
				err = fmt.Errorf(`expected a duration such as "1m", from %v to %v`, minRateTime, maxRateTime)
			}
		default:
			err = errMember
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case r.Calls+r.Bytes == 0:
		return nil, errors.New("rate: expected calls, bytes or both")
	case r.Per == 0:
		return nil, errors.New(`rate.per: missing; expected a duration such as "1m"`)
	case r.Burst > 0 && r.Calls == 0:
		return nil, errors.New("rate.burst: expected calls, too")
	}
	return r, nil
}

func amount(v ast.Value) (int64, error) {
	number, _ := v.(ast.Number)
	n, err := json.Number(number).Int64()
	if err != nil || n < 1 || n > maxRate {
		return 0, fmt.Errorf("expected a whole number from 1 to %d", int64(maxRate))
	}
	return n, nil
}

func rateKeys(v ast.Value) ([]obligation.RateKey, error) {
	list, err := names(v, func(s string) error {
		if !slices.Contains(allRateKeys(), obligation.RateKey(s)) {
			return fmt.Errorf("expected one of %q", allRateKeys())
		}
		return nil
	})
	var keys []obligation.RateKey
	for _, name := range list {
		keys = append(keys, obligation.RateKey(name))
	}
	return keys, err
}

// record reads the one thing that can be asked of the record.
func record(v ast.Value) (obligation.Obligation, error) {
	if v.Compare(ast.String("full")) != 0 {
		return nil, errors.New(`expected record, the text "full"`)
	}
	return obligation.RecordFull{}, nil
}

// approve reads that a person has to approve the call, and who may. To say that no approval
// is needed is an error: it would not undo what another rule says.
func approve(v ast.Value) (obligation.Obligation, error) {
	var a obligation.Approve
	if v.Compare(ast.Boolean(true)) == 0 {
		return a, nil
	}
	err := eachMember("approve", "true or an object of by and not_self", 1, v, func(name string, v ast.Value) (err error) {
		switch name {
		case "by":
			if a.By, err = names(v, tables.CheckSubject); err == nil && len(a.By) == 0 {
				err = tables.ErrNobody
			}
		case "not_self":
			if a.NotSelf = v.Compare(ast.Boolean(true)) == 0; !a.NotSelf {
				err = errors.New("expected true")
			}
		default:
			err = errMember
		}
		return err
	})
	return a, err
}

func allRateKeys() []obligation.RateKey {
	return []obligation.RateKey{obligation.ByPrincipal, obligation.ByServer, obligation.BySession, obligation.ByTool}
}

// CheckMembers checks the names in an obligation whose values are not known.
func CheckMembers(o ast.Object, names []string) error {
	if kind, ok := input.Member(o, "type").(ast.String); ok {
		others := map[string]string{"timeout": "after", "max_result": "bytes", "sanitize": "profile"}
		other, known := others[string(kind)]
		if !known {
			return fmt.Errorf("unknown type of obligation %q; check its spelling", string(kind))
		}
		if len(names) == o.Len() && (len(names) != 2 || !slices.Contains(names, other)) {
			return fmt.Errorf("an obligation of the type %s has the members type and %s", kind, other)
		}
		return nil
	}
	if len(names) == 1 && o.Len() == 1 && single[names[0]] == nil {
		return fmt.Errorf("unknown obligation %q; check its spelling", names[0])
	}
	return nil
}
