// Command goreactor is a reactor that decodes its arguments as JSON and encodes
// them again. Built for the host it is a command that does so with its stdin.
package main

import "encoding/json"

func answer(args []byte) ([]byte, error) {
	var v map[string]any
	if err := json.Unmarshal(args, &v); err != nil {
		return nil, err
	}
	v["seen"] = len(v)
	return json.Marshal(v)
}
