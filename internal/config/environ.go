package config

import (
	"maps"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/envfile"
)

// readEnvFrom reads a list of names of variables that a server gets as the gateway has them.
func readEnvFrom(to *map[string]Secret) decode.Reader {
	return func(v decode.Value) {
		*to = map[string]Secret{}
		for item := range v.List() {
			var name string
			if decode.Text(&name, check.Variable)(item); name == "" || check.Variable(name) != nil {
				continue
			}
			variable := *item.Node
			variable.Text = "${" + name + "}"
			if value, ok := item.Place(&variable, item.Path).Written(); ok {
				(*to)[name] = Secret(value)
			}
		}
	}
}

// readEnvFile reads the file of variables that a server gets. Without it the server is faulted.
func readEnvFile(to *map[string]Secret) decode.Reader {
	return func(v decode.Value) {
		var file string
		if decode.Path(&file)(v); file == "" {
			return
		}
		vars, err := envfile.Read[Secret](file)
		if err != nil {
			v.Fault(err)
		}
		*to = vars
	}
}

// joined returns all variables; the later of two maps wins.
func joined(all ...map[string]Secret) (env map[string]Secret) {
	for _, one := range all {
		if one != nil && env == nil {
			env = map[string]Secret{}
		}
		maps.Copy(env, one)
	}
	return env
}
