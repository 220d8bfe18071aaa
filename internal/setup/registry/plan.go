package registry

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Kinds of packages, and a server with a URL.
const (
	NPM    = "npm"
	PyPI   = "pypi"
	OCI    = "oci"
	NuGet  = "nuget"
	MCPB   = "mcpb"
	remote = "remote"
)

// Options choose a part of an entry.
type Options struct {
	Kind   string // npm, pypi, oci, nuget or remote; "" is the first that can be used
	Digest string // sha256:..., of an image that the entry names by a tag
	// Resolve returns the digest that an image has now, named by a tag.
	Resolve func(image string) (string, error)
	Host    string                    // a remote may be there, although that is not the publisher's domain
	Here    func(program string) bool // whether a program is installed
	Values  map[string]string         // what inputs get, by their names
	// Secret returns what a configuration has in the place of a secret; it is called once the entry is found good.
	Secret func(name, value string) (string, error)
	// Literal returns a text of the entry as a configuration has it, Given one of Values.
	Literal, Given func(string) string
}

// A Plan is what an entry runs or reaches here.
type Plan struct {
	Kind    string
	What    string // the package with its version, or the URL
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Type    string // transport of a URL
	Headers map[string]string
	Wanted  []Input  // inputs without a value that have to have one, by [Input.Key]
	Open    []Input  // those that may have one
	Hosts   []string // that it says it reaches; nil is any
}

// runners are the programs that run packages. The first is the usual one.
var runners = map[string][]string{NPM: {"npx"}, PyPI: {"uvx"}, OCI: {"docker", "podman"}, NuGet: {"dnx"}}

// bases are where packages of a kind are published.
var bases = map[string]string{NPM: "registry.npmjs.org", PyPI: "pypi.org", NuGet: "api.nuget.org"}

var (
	npmName   = regexp.MustCompile(`^(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~_][a-z0-9._~-]*$`)
	npmExact  = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.-]+)*$`)
	pypiName  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	nugetName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	image     = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
	digest    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

	optionName  = regexp.MustCompile(`^--?[A-Za-z0-9][A-Za-z0-9._-]*$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	placeholder = regexp.MustCompile(`\{([^{}]*)\}`)
	urlValue    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	mount       = regexp.MustCompile(`^type=bind,(?:src|source)=\{([^{}]+)\},(?:dst|target|destination)=(/[^,{}]*|\{[^{}]+\})(,(?:ro|readonly))?$`)
	volume      = regexp.MustCompile(`^\{([^{}]+)\}:(/[^:{}]*|\{[^{}]+\})(:ro)?$`)
)

// steering are variables that change what runs, or what that trusts. A name that ends in _ stands for all that begin so.
var steering = []string{
	"PATH", "HOME", "SHELL", "ENV", "IFS", "BASH_", "LD_", "DYLD_", "NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_", "NPM_CONFIG_",
	"PYTHON", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PIP_", "UV_", "VIRTUAL_ENV", "DOCKER_", "CONTAINER_", "DOTNET_", "NUGET_", "GIT_",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "RES_OPTIONS", "WASMGATE_", "TMPDIR", "XDG_",
}

// Plan returns the part of the entry that can be used here. The error says what is lacking, or why the entry is refused; then
// nothing of it can be run.
func (e *Entry) Plan(o Options) (*Plan, error) {
	var lacks []error
	for _, p := range e.Packages {
		if o.Kind != "" && o.Kind != p.Type {
			continue
		}
		plan, err := p.plan(o)
		if lack, ok := errors.AsType[*lackError](err); ok {
			lacks = append(lacks, lack)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: the package %q is refused: %w", e.Name, p.Identifier, err)
		}
		return plan, nil
	}
	for _, r := range e.Remotes {
		if o.Kind != "" && o.Kind != remote {
			continue
		}
		plan, err := r.plan(e.Name, o)
		if err != nil {
			return nil, fmt.Errorf("%s: the remote server is refused: %w", e.Name, err)
		}
		return plan, nil
	}
	if len(lacks) == 0 {
		lacks = append(lacks, errors.New("the entry has nothing to run of that kind"))
	}
	return nil, fmt.Errorf("%s cannot be added: %w", e.Name, errors.Join(lacks...))
}

// A lackError says why something honest cannot be used here.
type lackError struct{ why string }

func (e *lackError) Error() string { return e.why }

func lack(format string, args ...any) error { return &lackError{fmt.Sprintf(format, args...)} }

func (p *Package) plan(o Options) (*Plan, error) {
	switch {
	case p.Type == MCPB:
		return nil, lack("it is published as an MCPB bundle, which wasmgate does not unpack: install it by hand and add its command")
	case runners[p.Type] == nil:
		return nil, lack("packages of the kind %q are not known", p.Type)
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		return nil, lack("the package serves %s on this machine: start it by hand and add its URL", p.Transport.Type)
	case p.Hint != "" && !slices.Contains(runners[p.Type], p.Hint):
		return nil, fmt.Errorf("it is to be run by %q; packages of the kind %s run by %s", p.Hint, p.Type, strings.Join(runners[p.Type], " or "))
	}
	if err := p.from(); err != nil {
		return nil, err
	}
	run := p.Hint
	if run == "" {
		i := slices.IndexFunc(runners[p.Type], o.Here)
		run = runners[p.Type][max(0, i)]
	}
	f := filler{o: o, plan: &Plan{Kind: p.Type, Command: run, Env: map[string]string{}}}
	if err := f.pack(p, o); err != nil {
		return nil, err
	}
	if !o.Here(run) {
		return nil, lack("it needs %s, which is not installed", run)
	}
	return f.plan, f.err
}

// from refuses a registry of packages that is not the usual one.
func (p *Package) from() error {
	if p.Base == "" {
		return nil
	}
	u, err := url.Parse(p.Base)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return fmt.Errorf("its source is %q, which is not allowed", p.Base)
	}
	host := bases[p.Type]
	if p.Type == OCI {
		host, _, _ = strings.Cut(p.Identifier, "/")
		if !strings.ContainsAny(host, ".:") {
			host = "docker.io"
		}
	}
	if u.Host != host {
		return fmt.Errorf("it comes from %s and not from %s", u.Host, host)
	}
	return nil
}

// pack puts the words of a package into the plan: the runner's, the package with its exact version, and its own.
func (f *filler) pack(p *Package, o Options) error {
	plan := f.plan
	bad := func(name, version *regexp.Regexp) error {
		switch {
		case len(p.Identifier) > 214 || !name.MatchString(p.Identifier) || strings.HasPrefix(p.Identifier, "xn--"):
			return fmt.Errorf("this is not a valid name of a package of the kind %s", p.Type)
		case !version.MatchString(p.Version) || !exact(p.Version):
			return fmt.Errorf("the version %q is not exact", p.Version)
		}
		return nil
	}
	var words []string
	switch p.Type {
	case NPM:
		if err := bad(npmName, npmExact); err != nil {
			return err
		}
		plan.What = p.Identifier + "@" + p.Version
		words = []string{"-y", plan.What}
	case PyPI:
		if err := bad(pypiName, versionPattern); err != nil {
			return err
		}
		plan.What = p.Identifier + "@" + p.Version
		words = []string{plan.What}
	case NuGet:
		if err := bad(nugetName, versionPattern); err != nil {
			return err
		}
		plan.What = p.Identifier + "@" + p.Version
		words = []string{plan.What, "--yes", "--"}
	case OCI:
		name, sum, _ := strings.Cut(p.Identifier, "@")
		if !image.MatchString(name) || strings.Contains(name, "xn--") {
			return errors.New("this is not a valid name of an image")
		}
		if sum = cmp.Or(sum, o.Digest); sum == "" {
			var err error
			if sum, err = o.Resolve(name); err != nil {
				return lack("it names the image %s by a tag, whose digest cannot be looked up: %v; look it up by hand and add it with --digest sha256:...", name, err)
			}
		}
		switch {
		case !digest.MatchString(sum):
			return fmt.Errorf("%q is not a digest of an image, which is sha256: and 64 hex digits in lower case", sum)
		}
		plan.What = name + "@" + sum
	}
	before, err := f.runtime(p)
	if err != nil {
		return err
	}
	after, err := f.arguments(p.Arguments)
	if err != nil {
		return err
	}
	if err := f.environment(p.Environment); err != nil {
		return err
	}
	if p.Type == OCI {
		words = []string{"run", "-i", "--rm", "--cap-drop=ALL", "--security-opt=no-new-privileges"}
		for _, in := range p.Environment {
			if _, set := plan.Env[in.Name]; set {
				words = append(words, "-e", in.Name) // the value is not among the arguments, which others can see
			}
		}
		words = append(append(words, before...), plan.What)
	}
	plan.Args = append(words, after...)
	return nil
}

// runtime returns the options of the runner that an entry may ask for.
func (f *filler) runtime(p *Package) (words []string, err error) {
	var flat []Input // --x=y, and --x y, as options with a value
	for i := 0; i < len(p.Runtime); i++ {
		in := p.Runtime[i]
		if in.Type == "named" || !strings.HasPrefix(in.Value, "-") {
			flat = append(flat, in)
			continue
		}
		name, value, joined := strings.Cut(in.Value, "=")
		in.Name, in.Value = name, value
		if !joined && i+1 < len(p.Runtime) && p.Runtime[i+1].Type != "named" && !strings.HasPrefix(p.Runtime[i+1].Value, "-") {
			i++
			in.Value, in.Variables = p.Runtime[i].Value, p.Runtime[i].Variables
		}
		flat = append(flat, in)
	}
	for _, in := range flat {
		plainOption := in.Value == "" && in.Default == "" && len(in.Variables) == 0
		switch {
		case p.Type == OCI && p.Version == "" && in.Name == "" && in.Value == "run":
		case plainOption && slices.Contains(map[string][]string{NPM: {"-y", "--yes"}, NuGet: {"--yes", "-y"}, OCI: {"-i", "--interactive", "--rm", "--init"}}[p.Type], in.Name):
		case p.Type == OCI && (in.Name == "--mount" && mount.MatchString(in.Value) || (in.Name == "-v" || in.Name == "--volume") && volume.MatchString(in.Value)):
			value, ok := f.value(&in)
			if ok {
				words = append(words, in.Name+"="+value)
				if in.Name == "-v" {
					words[len(words)-1] = "--volume=" + value
				}
			}
		case p.Type == OCI && (in.Name == "-e" || in.Name == "--env"):
			name, value, ok := strings.Cut(in.Value, "=")
			in.Name, in.Value = name, value
			if !ok {
				in.Value = ""
			}
			p.Environment = append(slices.Clone(p.Environment), in)
		default:
			return nil, fmt.Errorf("it asks for the option %q of the runner, which could change the program or its rights", strings.TrimSpace(in.Name+" "+in.Value))
		}
	}
	return words, nil
}

// arguments returns the words that a package gets.
func (f *filler) arguments(list []Input) (words []string, err error) {
	for _, in := range list {
		named := in.Type == "named"
		switch {
		case named && !optionName.MatchString(in.Name):
			return nil, fmt.Errorf("%q is not a name of an option", in.Name)
		case !named && (strings.HasPrefix(in.Value, "-") || strings.HasPrefix(in.Default, "-")):
			return nil, fmt.Errorf("the argument %q begins like an option", cmp.Or(in.Value, in.Default))
		case named && in.Value == "" && in.Default == "" && in.Hint == "" && in.Format == "" && !in.Secret && len(in.Choices) == 0 && f.o.Values[in.Key()] == "":
			if in.Required { // a switch
				words = append(words, in.Name)
			}
			continue
		}
		value, ok := f.value(&in)
		if !ok {
			continue
		}
		long := strings.HasPrefix(in.Name, "--")
		switch {
		case named && long:
			words = append(words, in.Name+"="+value)
		case strings.HasPrefix(value, "-"):
			return nil, fmt.Errorf("the value of %s begins like an option", in.Key())
		case named:
			words = append(words, in.Name, value)
		default:
			words = append(words, value)
		}
	}
	return words, nil
}

func (f *filler) environment(list []Input) error {
	for _, in := range list {
		upper := strings.ToUpper(in.Name)
		switch {
		case !envName.MatchString(in.Name):
			return fmt.Errorf("%q is not a name of a variable", in.Name)
		case slices.ContainsFunc(steering, func(s string) bool { return upper == s || strings.HasSuffix(s, "_") && strings.HasPrefix(upper, s) }):
			return fmt.Errorf("it sets the variable %s, which could change what runs", in.Name)
		}
		if value, ok := f.value(&in); ok {
			f.plan.Env[in.Name] = value
		}
	}
	return nil
}

func (r *Remote) plan(name string, o Options) (*Plan, error) {
	if r.Type != "streamable-http" && r.Type != "sse" {
		return nil, fmt.Errorf("the transport %q is not known", r.Type)
	}
	f := filler{o: o, plan: &Plan{Kind: remote, Type: r.Type, Headers: map[string]string{}}}
	f.o.Literal = func(s string) string { return s }
	f.o.Given = f.o.Literal
	at := Input{Name: "url", Value: r.URL, Variables: r.Variables, Required: true}
	address, ok := f.value(&at)
	if ok {
		for key := range r.Variables {
			if v := f.given(key, r.Variables[key]); v != "" && !urlValue.MatchString(v) {
				return nil, fmt.Errorf("the value of %s is not allowed in this URL: use letters, digits, dots, hyphens and underscores", key)
			}
		}
	} else {
		address = placeholder.ReplaceAllString(r.URL, "x")
	}
	if err := hostOf(address, name, o.Host); err != nil {
		return nil, err
	}
	f.plan.URL, f.plan.What = o.Literal(address), address
	f.o.Literal, f.o.Given = o.Literal, o.Given
	for _, h := range r.Headers {
		if value, ok := f.value(&h); ok {
			f.plan.Headers[h.Name] = value
		}
	}
	u, _ := url.Parse(address)
	f.plan.Hosts = []string{u.Host}
	return f.plan, f.err
}

// hostOf refuses a URL that is not below the publisher's domain, which the namespace of the name is, turned round.
// Namespaces of accounts, such as io.github.user, have no domain.
func hostOf(address, name, allowed string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" {
		return fmt.Errorf("%q is not an https URL", address)
	}
	host := strings.ToLower(u.Hostname())
	_, numeric := netip.ParseAddr(host)
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case numeric == nil || !strings.Contains(host, ".") || strings.Trim(last, "0123456789") == "" || slices.Contains([]string{"localhost", "local", "internal", "lan", "home", "arpa", "test", "invalid", "onion"}, last):
		return fmt.Errorf("%s is not a host of the Internet", host)
	case strings.ContainsFunc(host, func(r rune) bool { return r > '~' }) || strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--"):
		return fmt.Errorf("%s has letters that look like other letters", host)
	case host == allowed:
		return nil
	}
	namespace, _, _ := strings.Cut(strings.ToLower(name), "/")
	for _, accounts := range []string{"io.github.", "io.gitlab.", "com.github.", "com.gitlab."} {
		if strings.HasPrefix(namespace, accounts) {
			return nil
		}
	}
	labels := strings.Split(namespace, ".")
	slices.Reverse(labels)
	domain := strings.Join(labels, ".")
	for strings.Count(domain, ".") > 1 && host != domain && !strings.HasSuffix(host, "."+domain) && strings.HasSuffix(domain, "."+host) {
		_, domain, _ = strings.Cut(domain, ".")
	}
	if host != domain && !strings.HasSuffix(host, "."+domain) {
		return fmt.Errorf("it is at %s, which is not below %s, the domain of its publisher: if you know that it belongs there, add --allow-host %[1]s", host, domain)
	}
	return nil
}

// A filler puts values into a plan.
type filler struct {
	o    Options
	plan *Plan
	err  error
}

// Key is the name by which somebody gives an input its value.
func (in Input) Key() string { return cmp.Or(strings.TrimLeft(in.Name, "-"), in.Hint, "value") }

// given returns what somebody has given, or else the default.
func (f *filler) given(key string, in Input) string {
	if in.Value != "" {
		return in.Value
	}
	return cmp.Or(f.o.Values[key], in.Default)
}

// value returns what an input has, as a configuration has it. Without a value it is noted as wanted, or left out.
func (f *filler) value(in *Input) (string, bool) {
	if in.Value == "" {
		return f.single(in.Key(), *in)
	}
	whole, missing := true, false
	text := ""
	at := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(in.Value, -1) {
		text += f.o.Literal(in.Value[at:m[0]])
		at = m[1]
		name := in.Value[m[2]:m[3]]
		v, known := in.Variables[name]
		if !known {
			text += f.o.Literal(in.Value[m[0]:m[1]]) // braces that stand for themselves
			continue
		}
		v.Secret, v.Name = v.Secret || in.Secret, name
		v.Required = v.Required || in.Required
		value, ok := f.single(name, v)
		missing = missing || !ok
		whole = false
		text += value
	}
	text += f.o.Literal(in.Value[at:])
	if whole && in.Secret && f.err == nil {
		f.err = fmt.Errorf("the entry holds a secret of its own, %s", in.Key())
	}
	return text, !missing
}

func (f *filler) single(key string, in Input) (string, bool) {
	value := f.given(key, in)
	switch {
	case value == "" && in.Required:
		in.Name = key
		f.plan.Wanted = append(f.plan.Wanted, in)
		return "", false
	case value == "":
		in.Name = key
		f.plan.Open = append(f.plan.Open, in)
		return "", false
	case len(in.Choices) > 0 && !slices.Contains(in.Choices, value):
		f.fail("%s is not one of %s", key, strings.Join(in.Choices, ", "))
		return "", false
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		f.fail("the value of %s holds a control character", key)
		return "", false
	case in.Secret && in.Value == "":
		text, err := f.o.Secret(key, value)
		if err != nil {
			f.fail("%s: %v", key, err)
		}
		return text, err == nil
	}
	if in.Value == "" && f.o.Values[key] != "" {
		return f.o.Given(value), true
	}
	return f.o.Literal(value), true
}

func (f *filler) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}
