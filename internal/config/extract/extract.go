package extract

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/variables"
)

// A Moved is a secret that was taken out of a configuration.
type Moved struct {
	Server string
	Where  string // such as env.GITHUB_TOKEN, args[2] or url
	Name   string // of the environment variable that has to hold it now
	Value  config.Secret
}

// Servers returns the servers with what looks like a credential replaced by
// ${NAME}, and says what has to be put into the environment for it. A credential
// is recognized by the name of the variable, header, flag or query
// parameter (token, key, secret, password, authorization, ...) or by the shape
// of the value. It errs towards moving: a variable too many is a nuisance, a
// token in a file that is committed is not.
//
// The servers are those of [config.ImportMCP], which are not changed. Equal values of
// equal names share a variable.
func Servers(servers []config.Server) ([]config.Server, []Moved) {
	e := &extractor{names: map[string]config.Secret{}}
	out := slices.Clone(servers)
	for i := range out {
		s := &out[i]
		s.Args, s.Env, s.Headers = slices.Clone(s.Args), maps.Clone(s.Env), maps.Clone(s.Headers)
		e.server = s.ID
		e.env(s.Env)
		e.headers(s.Headers)
		e.args(s.Args)
		s.URL = e.query("url", s.URL)
	}
	return out, e.moved
}

type extractor struct {
	server string
	names  map[string]config.Secret // given so far
	moved  []Moved
}

// variable returns ${NAME} for a value, which is in the language of
// wasmgate.yaml. The name gets the server's in front if another value has it.
func (e *extractor) variable(where, name, value string) string {
	secret := config.Secret(strings.ReplaceAll(value, "$$", "$"))
	for i, base := 1, variables.Name(name); ; i++ {
		name = base
		if i > 1 {
			name = variables.Name(e.server + "_" + base)
		}
		if i > 2 {
			name = fmt.Sprintf("%s_%d", name, i-1)
		}
		if old, ok := e.names[name]; !ok || old == secret {
			break
		}
	}
	e.moved = append(e.moved, Moved{e.server, where, name, secret})
	e.names[name] = secret
	return "${" + name + "}"
}

// own puts the server's name before that of a thing all servers have.
func (e *extractor) own(name string) string { return e.server + "_" + name }

func (e *extractor) env(vars map[string]config.Secret) {
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		v, where := string(vars[k]), "env."+k
		switch {
		case filled(v):
		case secretName(k) && !trivial(v) || secretShape(v) || secretInside(v):
			vars[k] = config.Secret(e.variable(where, k, v))
		case strings.Contains(v, "://"):
			vars[k] = config.Secret(e.query(where, v))
		}
	}
}

var scheme = regexp.MustCompile(`^(?i:bearer|basic|token|apikey) +`)

func (e *extractor) headers(headers map[string]config.Secret) {
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		v := string(headers[k])
		before := scheme.FindString(v)
		name, rest := k, v[len(before):]
		if strings.EqualFold(k, "authorization") {
			name = "token"
		}
		if !filled(rest) && (secretName(k) && !trivial(rest) || secretShape(rest)) {
			headers[k] = config.Secret(before + e.variable("headers."+k, e.own(name), rest))
		}
	}
}

var header = regexp.MustCompile(`^[A-Za-z0-9-]+: *`) // in an argument: --header "Authorization: Bearer x"

func (e *extractor) args(args []string) {
	flag := "" // the option whose value may come next
	for i, a := range args {
		where := fmt.Sprintf("args[%d]", i)
		name, before, value := flag, "", a
		flag = ""
		switch {
		case strings.HasPrefix(a, "-"):
			option, v, ok := strings.Cut(a, "=")
			if !ok {
				flag = a
				continue
			}
			name, before, value = option, option+"=", v
		case header.MatchString(a) && !strings.Contains(a, "://"):
			before = header.FindString(a)
			name = strings.TrimRight(before, ": ")
			value = a[len(before):]
			before += scheme.FindString(value)
			value = value[len(scheme.FindString(value)):]
		}
		name = strings.TrimLeft(name, "-")
		switch {
		case filled(value):
		case strings.Contains(value, "://"):
			args[i] = before + e.query(where, value)
		case secretName(name) && !trivial(value):
			args[i] = before + e.variable(where, e.own(name), value)
		case secretShape(value) || secretInside(value):
			args[i] = before + e.variable(where, e.own("secret"), value)
		}
	}
}

var parameter = regexp.MustCompile(`([?&])([^=&#]+)=([^&#]*)`)

// query moves secrets out of a URL: values of its query, segments of its path, and the whole of one
// with a password.
func (e *extractor) query(where, s string) string {
	if credentials(s) {
		return e.variable(where, e.own("url"), s)
	}
	s = parameter.ReplaceAllStringFunc(s, func(p string) string {
		m := parameter.FindStringSubmatch(p)
		value, err := url.QueryUnescape(m[3])
		if err != nil || filled(value) || !(secretName(m[2]) && !trivial(value) || secretShape(value)) {
			return p
		}
		return m[1] + m[2] + "=" + e.variable(where, e.own(m[2]), m[3])
	})
	path, rest, found := strings.Cut(s, "?")
	segments := strings.Split(path, "/")
	for i, v := range segments {
		if i > 2 && !filled(v) && secretShape(v) {
			segments[i] = e.variable(where, e.own("secret"), v)
		}
	}
	s = strings.Join(segments, "/")
	if found {
		s += "?" + rest
	}
	return s
}

// filled reports whether a value is a variable already.
func filled(s string) bool {
	return s == "" || strings.Contains(strings.ReplaceAll(s, "$$", ""), "${")
}

// trivial reports whether a value is too plain to be a credential.
func trivial(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "none", "null", "on", "off":
		return true
	}
	return len(s) < 3
}

// secretInside reports whether a value is JSON with a credential in it, such as the headers
// that a server is to send: it is moved whole.
func secretInside(s string) bool {
	var doc any
	if !strings.HasPrefix(strings.TrimSpace(s), "{") || json.Unmarshal([]byte(s), &doc) != nil {
		return false
	}
	return secretMember("", doc)
}

func secretMember(name string, v any) bool {
	switch v := v.(type) {
	case string:
		v = v[len(scheme.FindString(v)):]
		return !filled(v) && (secretName(name) && !trivial(v) || secretShape(v))
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return secretMember(name, one) })
	case map[string]any:
		for k, one := range v {
			if secretMember(k, one) {
				return true
			}
		}
	}
	return false
}

var (
	wordEnd    = regexp.MustCompile(`[a-z0-9][A-Z]`)
	secretWord = regexp.MustCompile(`(TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTHORIZATION|COOKIE|BEARER|SIGNATURE)$|^(AUTH|PAT|PASS|DSN)$`)
	aboutWord  = regexp.MustCompile(`^(PATH|FILE|DIR|URL|URI|NAME|TYPE|TTL|LENGTH|LIMIT|SOCK|METHOD)$`)
)

// secretName reports whether a name says that its value is secret: one of its words ends as such names
// do, and the last word does not make it something about a secret (where it is, how long it lives).
// Words are split alike in API_KEY, apiKey, api-key and X-Api-Key.
func secretName(name string) bool {
	name = variables.Name(wordEnd.ReplaceAllStringFunc(name, func(s string) string { return s[:1] + "_" + s[1:] }))
	words := strings.Split(name, "_")
	if name == "PWD" || aboutWord.MatchString(words[len(words)-1]) {
		return false
	}
	return slices.ContainsFunc(words, secretWord.MatchString)
}

var (
	knownToken = regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{20}|github_pat_\w{20}|glpat-[\w-]{16}|sk-[\w-]{16}|[spr]k_(?:live|test)_\w{16}|` +
		`xox[abeoprs]-[\w-]{10}|xapp-[\w-]{10}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30}|ya29\.[\w-]{10}|hf_[A-Za-z0-9]{20}|npm_[A-Za-z0-9]{20}|` +
		`pypi-[\w-]{20}|dop_v1_[0-9a-f]{20}|SG\.[\w-]{16}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+|-----BEGIN [A-Z ]*PRIVATE KEY)`)
	longToken = regexp.MustCompile(`^[A-Za-z0-9_+=-]{32,}$`)
	hexToken  = regexp.MustCompile(`^[0-9a-fA-F]{32,}$`)
)

// secretShape reports whether a value looks like a credential by itself.
func secretShape(s string) bool {
	if knownToken.MatchString(s) || hexToken.MatchString(s) || credentials(s) {
		return true
	}
	return longToken.MatchString(s) && strings.ContainsAny(s, "0123456789") &&
		strings.ToLower(s) != s && strings.ToUpper(s) != s
}

// credentials reports whether s is a URL with a password.
func credentials(s string) bool {
	if !strings.Contains(s, "://") || !strings.Contains(s, "@") {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return false
	}
	password, ok := u.User.Password()
	return ok && password != ""
}
