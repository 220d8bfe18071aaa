module github.com/wasmgate/wasmgate/sandbox/internal/extism/testdata/pdk

go 1.26.0

require github.com/extism/go-pdk v1.1.3
