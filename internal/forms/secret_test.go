package forms_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/forms"
)

const (
	asksName = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`
	asksPIN  = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"PIN":{"type":"integer"}}}}`
)

func TestAsksSecret(t *testing.T) {
	field := func(name, more string) string {
		return fmt.Sprintf(`{"message":"Please fill in","requestedSchema":{"type":"object","properties":{%q:{"type":"string"%s}}}}`, name, more)
	}
	for _, name := range []string{
		"password", "Password", "PASSWORD", "user_password", "userPassword", "user-password", "newpassword", "password2", "passw0rd", "p4ssw0rd", "pa$$word",
		"ｐａｓｓｗｏｒｄ", "pass\u200bword", "pässwörd", "pаssword", "passwd", "pwd", "pass", "passphrase", "token", "apiToken", "access_token", "authtoken", "tokens",
		"apiKey", "api_key", "API-KEY", "api key", "APIKey", "secret", "clientSecret", "client_secret_value", "cardNumber", "card number", "credit-card", "cvv",
		"pin", "PIN", "pinCode", "user_pin", "privateKey", "private key", "ssh_key", "otp", "Passwort", "contraseña", "mot de passe", "пароль", "密码", "あなたのパスワード",
	} {
		if !forms.AsksSecret(actions.Elicit, doc.Must(field(name, ""))) {
			t.Errorf("a property %q was not noticed", name)
		}
		if name == "pass" {
			continue
		}
		for _, said := range []string{"title", "description", "format"} {
			if !forms.AsksSecret(actions.Elicit, doc.Must(field("a", fmt.Sprintf(`,%q:%q`, said, "Your "+name+", please")))) {
				t.Errorf("a %s with %q was not noticed", said, name)
			}
		}
		if !forms.AsksSecret(actions.Elicit, doc.Must(strings.Replace(field("a", ""), "Please fill in", "Your "+name, 1))) {
			t.Errorf("a message with %q was not noticed", name)
		}
	}
	for _, name := range []string{"name", "email", "pinned", "spinning", "tokenize", "secretary", "cardinality", "passenger", "bypass", "keyboard", "Größe", "имя", "ключи от дома", "日本"} {
		if forms.AsksSecret(actions.Elicit, doc.Must(field(name, `,"title":"`+name+`"`))) {
			t.Errorf("%q was taken for a secret", name)
		}
	}
	for params, want := range map[string]bool{
		field("a", `,"writeOnly":true`):     true,
		field("token", `,"enum":["a","b"]`): false,
		`{"message":"Delete the token?","requestedSchema":{"properties":{"sure":{"type":"boolean"}}}}`:                    false,
		`{"message":"Which tokens?","requestedSchema":{"properties":{"x":{"type":"array","items":{"enum":["a"]}}}}}`:      false,
		`{"message":"Your password","requestedSchema":{"properties":{"sure":{"type":"boolean"},"x":{"type":"integer"}}}}`: true,
		`{"mode":"url","message":"Your password","url":"https://a.example/login"}`:                                        false,
		`{"mode":"url","message":"go","url":"http://127.0.0.1:8080/"}`:                                                    false,
		`{"mode":"url","message":"go","url":"http://[::1]/"}`:                                                             false,
		`{"mode":"url","message":"go","url":"http://localhost/"}`:                                                         false,
		`{"mode":"url","message":"go","url":"http://a.example/"}`:                                                         true,
		`{"mode":"url","message":"go","url":"http://localhost.a.example/"}`:                                               true,
		`{"mode":"url","message":"go","url":"ftp://a.example/"}`:                                                          true,
		asksName: false,
	} {
		if got := forms.AsksSecret(actions.Elicit, doc.Must(params)); got != want {
			t.Errorf("%s: %t", params, got)
		}
	}
	for _, message := range []string{
		"Enter the code from your authenticator app", "Your 12 recovery words", "Three digits on the back of your card", "Your session cookie", "The connection string of the database", "Paste your .env file",
	} {
		if !forms.AsksSecret(actions.Elicit, doc.Must(strings.Replace(field("value", ""), "Please fill in", message, 1))) {
			t.Errorf("a message %q was not noticed", message)
		}
	}
	for _, message := range []string{"The name of your authenticator", "Which cookie do you like?", "Your 12 words", "The env of the file", "Put your card back"} {
		if forms.AsksSecret(actions.Elicit, doc.Must(strings.Replace(field("value", ""), "Please fill in", message, 1))) {
			t.Errorf("a message %q was taken for one that asks for a secret", message)
		}
	}
	if forms.AsksSecret(actions.Sample, doc.Must(asksPIN)) {
		t.Error("sampling asks no person")
	}
}
