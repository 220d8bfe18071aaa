package clients

import (
	"encoding/json"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
)

// Parse returns the settings in a file of JSON, TOML or YAML as its client reads them.
func (f Format) Parse(data []byte) (settings map[string]any, err error) {
	switch f.Name {
	case "toml":
		return settings, toml.Unmarshal(data, &settings)
	case "yaml":
		return settings, yaml.Unmarshal(data, &settings)
	}
	j, err := f.ParseJSON(data)
	if err != nil {
		return nil, err
	}
	return settings, json.Unmarshal(j.Plain(), &settings)
}

// At returns what the names lead to in settings; nil if nothing is there.
func At(settings map[string]any, names ...string) any {
	var at any = settings
	for _, name := range names {
		table, _ := at.(map[string]any)
		at = table[name]
	}
	return at
}
