package config

import (
	"maps"

	"github.com/wasmgate/wasmgate/internal/config/envfile"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// envFrom reads a list of names of variables that a server gets as the gateway has them.
func (d *decoder) envFrom(to *map[string]Secret, n *tree.Node, path string) {
	*to = map[string]Secret{}
	d.items(n, path, func(item *tree.Node, at string) {
		var name string
		if d.text(&name, checkVariable)(item, at); name == "" || checkVariable(name) != nil {
			return
		}
		variable := *item
		variable.Text = "${" + name + "}"
		if value, ok := d.written(&variable, at); ok {
			(*to)[name] = Secret(value)
		}
	})
}

// envFile reads the file of variables that a server gets. Without it the server is faulted.
func (d *decoder) envFile(to *map[string]Secret, n *tree.Node, path string) {
	var file string
	if d.path(&file)(n, path); file == "" {
		return
	}
	vars, err := envfile.Read[Secret](file)
	if err != nil && d.faults != nil {
		*d.faults = append(*d.faults, path+": "+err.Error())
	}
	*to = vars
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
