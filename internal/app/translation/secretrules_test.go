package translation

import (
	"reflect"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/secrets"
)

func TestSecretRules(t *testing.T) {
	to := secretRules(config.Secrets{
		Rules: []config.SecretKind{{ID: "acme-key", Regexp: "acme_x"}},
		Allow: []config.SecretAllow{{Rule: "github-pat"}},
	})
	if !reflect.DeepEqual(to.Rules, []secrets.Rule{{ID: "acme-key", Regexp: "acme_x"}}) || len(to.Allow) != 1 {
		t.Errorf("got %+v", to)
	}
}
