package sanitize_test

import (
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sanitize"
)

// Control tokens in angles, brackets and bars, by the models that have them. They are written
// with a caret in the place of their first character, so that none is in this file.
func TestTokensOfModels(t *testing.T) {
	const first = "^"
	removed := []string{
		"<^|im_start|>", "<^| im_start |>", "<^|im start|>", "<^|IM_END|>", "<^|turn>", "<^turn|>", "<^\uff5cUser\uff5c>", "&lt;^|im_end|&gt;", "<^|im_end&vert;>", "<^|eot_id|>",
		"[^|system|]", "[^|user|]", "[^|endofturn|]", "[^|assistant|]", "]^~b]", "]^~!b[", "[^e~[", "[^INST]", "[^/TOOL_RESULTS]", "<^start_of_turn>", "<^<SYS>>",
	}
	for _, spelled := range removed {
		token := strings.Replace(spelled, first, "", 1)
		for _, p := range []sanitize.Profile{sanitize.Code, sanitize.Text, sanitize.HTML, sanitize.Strict} {
			if clean, found := new(t, p).Sanitize("a " + token + " b"); clean != "a [removed: token] b" {
				t.Errorf("%s: %q became %q, %v", p, token, clean, found)
			}
		}
	}
	for _, spelled := range []string{
		"<^s>", "</^s>", "<^think>", "</^think>", "<^tool_call>", "<^tool_response>", "<^start_function_call>", "<^seed:bos>", "<^unk>", "<^extra_id_0>", "<^system>",
		"[^ARGS]", "[^CALL_ID]", "[^THINK]", "[^/THINK]", "[^BOS]",
	} {
		token := strings.Replace(spelled, first, "", 1)
		clean, found := new(t, sanitize.Text).Sanitize("a " + token + " b")
		if want := "a " + token[:1] + " " + token[1:] + " b"; clean != want {
			t.Errorf("%q became %q, %v", token, clean, found)
		}
		if clean, found := new(t, sanitize.Code).Sanitize(token); clean != token {
			t.Errorf("as code %q became %q, %v", token, clean, found)
		}
	}
	for _, text := range []string{
		"let y = f <| g x |> h <| start |> go", "[|1; 2|] [|x|] [a|b]", "a <| b", "x <|> y", "a[args] [Args] [bos]", "<S> Vec<S> <strong> <system x> <st>", "a]~b", "arr[e] [e~1]", "[x](/a)", "a|b> <c",
	} {
		if clean, found := new(t, sanitize.Text).Sanitize(text); clean != text {
			t.Errorf("%q became %q, %v", text, clean, found)
		}
	}
}
