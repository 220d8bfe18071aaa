//go:build wasip1

// Command pdk is a plug-in built with Extism's own kit for Go.
package main

import (
	"errors"
	"fmt"

	pdk "github.com/extism/go-pdk"
)

func main() {}

type object = map[string]any

//go:wasmexport describe
func describe() int32 {
	if err := pdk.OutputJSON(object{"tools": []object{{"name": "all", "description": "Uses all of the kit", "inputSchema": object{"type": "object"}}}}); err != nil {
		pdk.SetError(err)
		return 1
	}
	return 0
}

//go:wasmexport call
func call() int32 {
	var in struct {
		Params struct {
			Name      string
			Arguments object
		}
	}
	if err := pdk.InputJSON(&in); err != nil {
		pdk.SetError(err)
		return 1
	}
	if in.Params.Name != "all" {
		pdk.SetError(errors.New("no tool " + in.Params.Name))
		return 1
	}
	for _, level := range []pdk.LogLevel{pdk.LogTrace, pdk.LogDebug, pdk.LogInfo, pdk.LogWarn, pdk.LogError} {
		pdk.Log(level, fmt.Sprint("level ", int(level)))
	}
	config, found := pdk.GetConfig("greeting")
	_, missing := pdk.GetConfig("none")
	pdk.SetVar("v", []byte("value"))
	pdk.SetVarInt("n", 42)
	pdk.SetVar("gone", []byte("x"))
	pdk.RemoveVar("gone")
	answer := pdk.NewHTTPRequest(pdk.MethodPut, "https://example.com/a").SetHeader("X-A", "b").SetBody([]byte("body")).Send()
	text := fmt.Sprintf("%v|%v|%v|%v|%s|%v|%v|%v|%s|%v", in.Params.Arguments["x"], config, found, missing, pdk.GetVar("v"), pdk.GetVarInt("n"), len(pdk.GetVar("gone")),
		answer.Status(), answer.Body(), answer.Headers()["content-type"])
	if err := pdk.OutputJSON(object{"content": []object{{"type": "text", "text": text}}}); err != nil {
		pdk.SetError(err)
		return 1
	}
	return 0
}
