package confine_test

import (
	"maps"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/confine"
)

func TestEnviron(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the names are those of Unix")
	}
	gateway := map[string]string{
		"PATH": "/bin", "HOME": "/home/me", "TERM": "", "LD_PRELOAD": "x.so", "API_TOKEN": "x", "LC_ALL": "C",
	}
	lookup := func(name string) (string, bool) {
		value, ok := gateway[name]
		return value, ok
	}
	tests := map[string]struct {
		extra  map[string]string
		lookup func(string) (string, bool)
		want   []string
	}{
		"the minimum, set to empty or not":  {nil, lookup, []string{"HOME=/home/me", "PATH=/bin", "TERM="}},
		"what is given is added":            {map[string]string{"LOG": "1", "A": "b=c"}, lookup, []string{"A=b=c", "HOME=/home/me", "LOG=1", "PATH=/bin", "TERM="}},
		"what is given wins":                {map[string]string{"PATH": "/opt", "HOME": ""}, lookup, []string{"HOME=", "PATH=/opt", "TERM="}},
		"nothing is known without a lookup": {map[string]string{"LOG": "1"}, nil, []string{"LOG=1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, confine.Environ(tt.extra, tt.lookup)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNetwork(t *testing.T) {
	vars := map[string]string{
		"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "localhost,@x", "http_proxy": "http://user:pw@proxy.example",
		"ALL_PROXY": "user@proxy.example", "SSL_CERT_FILE": "/etc/ca.pem", "NODE_EXTRA_CA_CERTS": "/a@b/ca.pem", "AWS_SECRET": "x",
	}
	got := confine.Network(func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	want := map[string]string{"HTTPS_PROXY": "http://proxy.example:3128", "SSL_CERT_FILE": "/etc/ca.pem", "NODE_EXTRA_CA_CERTS": "/a@b/ca.pem"}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
