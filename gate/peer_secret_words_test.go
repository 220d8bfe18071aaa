package gate_test

import (
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
)

// TestFormsOfSecrets: which fields of a form count as asking for a secret. What counts
// needs a grant; what counts without reason teaches people to give that to everything.
func TestFormsOfSecrets(t *testing.T) {
	for property, want := range map[string]bool{
		// Servers that ask for none.
		`"favourite":{"type":"integer","minimum":1,"maximum":100,"description":"Your favorite integer (do not give us your phone number, pin, or other sensitive info)"}`: false,
		`"note":{"type":"string","description":"What went wrong. Do not include passwords or tokens."}`:                                                                   false,
		`"note":{"type":"string","description":"Anything (never paste API keys or other secrets)"}`:                                                                       false,
		`"max_tokens":{"type":"integer"}`:                                  false,
		`"maxTokens":{"type":"number","title":"Tokens at most"}`:           false,
		`"token_name":{"type":"string","title":"What it shall be called"}`: false,
		`"password_length":{"type":"integer"}`:                             false,
		`"secretName":{"type":"string"}`:                                   false,
		`"token_type":{"type":"string"}`:                                   false,
		`"pinned":{"type":"string"}`:                                       false,
		`"remember_password":{"type":"boolean"}`:                           false,
		`"pin":{"type":"string","enum":["front","back"]}`:                  false,
		`"zip":{"type":"string","title":"Postal code"}`:                    false,

		// Those that do, whatever else they say.
		`"pin":{"type":"string"}`:                                                               true,
		`"pin":{"type":"integer"}`:                                                              true,
		`"pin":{"type":"integer","minimum":0,"maximum":9999}`:                                   true,
		`"cvv":{"type":"integer","minimum":0,"maximum":999}`:                                    true,
		`"cvv":{"type":"integer","minimum":-999,"maximum":0}`:                                   true,
		`"x":{"type":"number","minimum":0,"maximum":1,"title":"Your PIN after the point"}`:      true,
		`"x":{"type":"integer","maximum":100,"title":"PIN"}`:                                    true,
		`"password":{"type":"integer"}`:                                                         true,
		`"otp":{"type":"number"}`:                                                               true,
		`"token":{"type":"integer","title":"Six digits"}`:                                       true,
		`"x":{"type":"string","description":"Do not include spaces, the password is required"}`: true,
		`"x":{"type":"string","description":"Do not include spaces\nPassword"}`:                 true,
		`"pin":{"type":"integer","minimum":0,"maximum":100}`:                                    true,
		`"token":{"type":"string"}`:                                                             true,
		`"name":{"type":"string","title":"API token"}`:                                          true,
		`"token_name":{"type":"string","title":"Your token"}`:                                   true,
		`"token_value":{"type":"string"}`:                                                       true,
		`"name_of_password":{"type":"string"}`:                                                  true,
		`"x":{"type":"string","description":"Your password. Do not give us your PIN."}`:         true,
		`"x":{"type":"string","description":"Do not worry, and type your password"}`:            true,
		`"x":{"type":"string","description":"Do not share your password with anybody"}`:         true,
		`"x":{"type":"string","description":"Do not enter anything but your password"}`:         true,
		`"x":{"type":"string","description":"Never enter your old password, type the new one"}`: true,
		`"x":{"type":"string","description":"Do not include spaces. Password of the database"}`: true,
		`"x":{"type":"string","description":"Do not enter anything other than your password"}`:  true,
		`"x":{"type":"string","title":"Do not enter your password"}`:                            true,
		`"password":{"type":"string","description":"Do not enter your PIN"}`:                    true,
	} {
		form := fmt.Sprintf(`{"message":"Please fill in","requestedSchema":{"type":"object","properties":{%s}}}`, property)
		if got := gate.AsksSecret(gate.Elicit, gate.MustDoc(form)); got != want {
			t.Errorf("%s: %t", property, got)
		}
	}
}
