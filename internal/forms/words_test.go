package forms_test

import (
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/forms"
)

// TestFormsOfSecrets: which fields of a form count as asking for a secret. What counts
// needs a grant; what counts without reason teaches people to give that to everything.
func TestFormsOfSecrets(t *testing.T) {
	for property, want := range map[string]bool{
		// Servers that ask for none.
		`"favourite":{"type":"integer","minimum":1,"maximum":100,"description":"Your favorite integer (do not give us your phone number, pin, or other sensitive info)"}`: false,
		`"note":{"type":"string","description":"What went wrong. Do not include passwords or tokens."}`:                                                                   false,
		`"note":{"type":"string","description":"Anything (never paste API keys or other secrets)"}`:                                                                       false,
		`"max_tokens":{"type":"integer"}`:                                                      false,
		`"maxTokens":{"type":"number","title":"Tokens at most"}`:                               false,
		`"token_name":{"type":"string","title":"What it shall be called"}`:                     false,
		`"password_length":{"type":"integer"}`:                                                 false,
		`"secretName":{"type":"string"}`:                                                       false,
		`"token_type":{"type":"string"}`:                                                       false,
		`"pinned":{"type":"string"}`:                                                           false,
		`"remember_password":{"type":"boolean"}`:                                               false,
		`"pin":{"type":"string","enum":["front","back"]}`:                                      false,
		`"zip":{"type":"string","title":"Postal code"}`:                                        false,
		`"max_output_tokens":{"type":"integer","title":"Maximum number of output tokens"}`:     false,
		`"side":{"type":"string","oneOf":[{"const":"pin","title":"The PIN side"}]}`:            false,
		`"x":{"type":"string","description":"Don’t enter your password, card number or PIN."}`: false,

		// Those that do, whatever else they say.
		`"x":{"type":"string","description":"Never type any other password"}`:                            true,
		`"x":{"type":"string","description":"Do not enter your PIN or other passwords"}`:                 true,
		`"x":{"type":"string","description":"Do not include spaces in your password"}`:                   true,
		`"x":{"type":"string","description":"Never enter an empty password."}`:                           true,
		`"x":{"type":"string","description":"Do not enter a password of fewer than 8 letters"}`:          true,
		`"x":{"type":"string","description":"Do not type spaces around the API key."}`:                   true,
		`"x":{"type":"string","description":"Do not include spaces, password of the database"}`:          true,
		`"x":{"type":"string","description":"Do not include spaces — password"}`:                         true,
		`"x":{"type":"string","description":"Do not include spaces | password"}`:                         true,
		`"x":{"type":"string","description":"The login fails when you do not enter your password."}`:     true,
		`"x":{"type":"string","description":"You will not get in if you never type your PIN"}`:           true,
		`"x":{"type":"string","description":"Why not? You could just not, but do not give us your PIN"}`: true,
		`"x":{"type":"string","format":"password","description":"Do not enter your PIN"}`:                true,
		`"x":{"type":"string","title":"Password","description":"Do not enter your PIN"}`:                 true,
		`"token_name":{"type":"string","format":"password"}`:                                             true,
		`"token_name":{"type":"string","writeOnly":true}`:                                                true,
		`"enter_password_type":{"type":"string"}`:                                                        true,
		`"your_pin_name":{"type":"string"}`:                                                              true,
		`"type_the_password_of_any_length":{"type":"string"}`:                                            true,
		`"password_and_name":{"type":"string"}`:                                                          true,
		`"tokens":{"type":"integer","title":"From your device"}`:                                         true,
		`"x":{"type":"integer","title":"What your tokens show"}`:                                         true,
		`"x":{"type":"integer","title":"Max tokens, and your tokens"}`:                                   true,
		`"accesstokens":{"type":"string"}`:                                                               true,
		`"password":{"type":"string","enum":[]}`:                                                         true,
		`"password":{"type":"string","oneOf":[]}`:                                                        true,
		`"password":{"type":"string","anyOf":[{"type":"string"}]}`:                                       true,
		`"password":{"type":"string","oneOf":[{"const":"a"},{"type":"string"}]}`:                         true,
		`"password":{"type":"array","items":{"type":"string","anyOf":[{}]}}`:                             true,
		`"x":{"type":"array","items":{"type":"string","title":"A password"}}`:                            true,
		`"pin":{"type":"string"}`:                                                                        true,
		`"pin":{"type":"integer"}`:                                                                       true,
		`"pin":{"type":"integer","minimum":0,"maximum":9999}`:                                            true,
		`"cvv":{"type":"integer","minimum":0,"maximum":999}`:                                             true,
		`"cvv":{"type":"integer","minimum":-999,"maximum":0}`:                                            true,
		`"x":{"type":"number","minimum":0,"maximum":1,"title":"Your PIN after the point"}`:               true,
		`"x":{"type":"integer","maximum":100,"title":"PIN"}`:                                             true,
		`"password":{"type":"integer"}`:                                                                  true,
		`"otp":{"type":"number"}`:                                                                        true,
		`"token":{"type":"integer","title":"Six digits"}`:                                                true,
		`"x":{"type":"string","description":"Do not include spaces, the password is required"}`:          true,
		`"x":{"type":"string","description":"Do not include spaces\nPassword"}`:                          true,
		`"pin":{"type":"integer","minimum":0,"maximum":100}`:                                             true,
		`"token":{"type":"string"}`:                                                                      true,
		`"name":{"type":"string","title":"API token"}`:                                                   true,
		`"token_name":{"type":"string","title":"Your token"}`:                                            true,
		`"token_value":{"type":"string"}`:                                                                true,
		`"name_of_password":{"type":"string"}`:                                                           true,
		`"x":{"type":"string","description":"Your password. Do not give us your PIN."}`:                  true,
		`"x":{"type":"string","description":"Do not worry, and type your password"}`:                     true,
		`"x":{"type":"string","description":"Do not share your password with anybody"}`:                  true,
		`"x":{"type":"string","description":"Do not enter anything but your password"}`:                  true,
		`"x":{"type":"string","description":"Never enter your old password, type the new one"}`:          true,
		`"x":{"type":"string","description":"Do not include spaces. Password of the database"}`:          true,
		`"x":{"type":"string","description":"Do not enter anything other than your password"}`:           true,
		`"x":{"type":"string","title":"Do not enter your password"}`:                                     true,
		`"password":{"type":"string","description":"Do not enter your PIN"}`:                             true,
	} {
		form := fmt.Sprintf(`{"message":"Please fill in","requestedSchema":{"type":"object","properties":{%s}}}`, property)
		if got := forms.AsksSecret(actions.Elicit, doc.Must(form)); got != want {
			t.Errorf("%s: %t", property, got)
		}
	}
}
