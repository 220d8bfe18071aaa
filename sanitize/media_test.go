package sanitize_test

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/sanitize"
)

func TestMedia(t *testing.T) {
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	huge := bytes.Clone(dot.Bytes())
	copy(huge[16:], "\x00\x00\xff\xff\x00\x00\xff\xff") // width and height in the header
	huge = fixIHDR(huge)

	b64 := base64.StdEncoding.EncodeToString
	tests := map[string]struct {
		mime, data string
		want       sanitize.Medium
	}{
		"a picture":                         {"image/png", b64(dot.Bytes()), sanitize.Medium{MIME: "image/png"}},
		"a picture without padding":         {"image/png", strings.TrimRight(b64(dot.Bytes()), "="), sanitize.Medium{MIME: "image/png"}},
		"a picture in lines":                {"image/png", b64(dot.Bytes())[:20] + "\r\n" + b64(dot.Bytes())[20:], sanitize.Medium{MIME: "image/png"}},
		"a type with a parameter":           {"image/png; x=y", b64(dot.Bytes()), sanitize.Medium{MIME: "image/png"}},
		"a picture of another type":         {"image/jpeg", b64(dot.Bytes()), sanitize.Medium{MIME: "image/png"}},
		"a page that is called a picture":   {"image/png", b64([]byte("<html><script>x</script>")), sanitize.Medium{MIME: "image/png", Refused: "content whose bytes are not image/png"}},
		"markup of an unknown picture type": {"image/x-new", b64([]byte("\n <svg onload=x>")), sanitize.Medium{MIME: "image/x-new", Refused: "content whose bytes are not image/x-new"}},
		"a drawing that can run scripts":    {"image/svg+xml", b64([]byte("<svg/>")), sanitize.Medium{MIME: "image/svg+xml", Text: true}},
		"a page that is called a sound":     {"audio/mpeg", b64([]byte("<html>")), sanitize.Medium{MIME: "audio/mpeg", Refused: "content whose bytes are not audio/mpeg"}},
		"a sound":                           {"audio/wav", b64([]byte("RIFF\x00\x00\x00\x00WAVEfmt ")), sanitize.Medium{MIME: "audio/wav"}},
		"an image that fills the memory":    {"image/png", b64(huge), sanitize.Medium{MIME: "image/png", Refused: "image of 65535 x 65535 pixels"}},
		"no base64":                         {"image/png", "<script>", sanitize.Medium{MIME: "image/png", Refused: "content that is no base64"}},
		"a type that is not known":          {"application/x-thing", b64([]byte("anything")), sanitize.Medium{MIME: "application/x-thing"}},
		"a page":                            {"Text/HTML; charset=utf-8", b64([]byte("x")), sanitize.Medium{MIME: "text/html", Text: true}},
		"data":                              {"application/ld+json", b64([]byte("{}")), sanitize.Medium{MIME: "application/ld+json", Text: true}},
		"a page of no type":                 {"", b64([]byte("\x00<svg>")), sanitize.Medium{Text: true}},
		"nothing":                           {"image/png", "", sanitize.Medium{MIME: "image/png", Refused: "content whose bytes are not image/png"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sanitize.Media(tt.mime, tt.data); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// fixIHDR gives the header of a PNG its checksum again.
func fixIHDR(b []byte) []byte {
	sum := crc32.ChecksumIEEE(b[12:29])
	copy(b[29:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return b
}

func TestResourceLinks(t *testing.T) {
	listed, err := sanitize.NewLinks([]string{"https://e.example"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		links sanitize.Links
		uri   string
		want  bool
	}{
		"a server's own scheme":       {sanitize.Links{}, "demo://resource/1", true},
		"a file":                      {sanitize.Links{}, "file:///srv/a.txt", true},
		"a page":                      {sanitize.Links{}, "https://e.example/a?b=c", true},
		"a script":                    {sanitize.Links{}, "javascript:alert(1)", false},
		"a script in capitals":        {sanitize.Links{}, "JavaScript:alert(1)", false},
		"a script behind a tab":       {sanitize.Links{}, "java\tscript:alert(1)", false},
		"a document in the link":      {sanitize.Links{}, "data:text/html,x", false},
		"an editor's extension":       {sanitize.Links{}, "vscode:extension/x", false},
		"a page that is listed":       {listed, "https://e.example/a", true},
		"a page that is not":          {listed, "https://x.example/a", false},
		"no scheme at all":            {sanitize.Links{}, "a/b", false},
		"a scheme with a hidden mark": {sanitize.Links{}, "de\u200bmo://a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.links.Resource(tt.uri); got != tt.want {
				t.Errorf("%q: %v", tt.uri, got)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	for in, want := range map[string]string{"<p>\u00e9": "<p>\u00e9", "\xff\xfe<\x00p\x00": "<p", "\xfe\xff\x00<\x00p": "<p"} {
		if got, ok := sanitize.Decode(b64([]byte(in))); !ok || got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{"?", b64([]byte("\xff\x00"))} {
		if got, ok := sanitize.Decode(in); ok {
			t.Errorf("%q is taken for the text %q", in, got)
		}
	}
}

func TestURLsThatStandAlone(t *testing.T) {
	var l sanitize.Links
	for url, want := range map[string][2]bool{ // as an image, as a link
		"https://e.example/a.png": {false, true}, "https://e.example/?d=1": {false, false}, "icons/a.png": {true, true}, "data:image/png;base64,AA": {true, false},
		"data:image/svg+xml,<svg>": {false, false}, "javascript:x": {false, false}, "/\te.example/a": {true, true}, "/\t/e.example/a": {false, true}, "/&sol;e.example/a?b": {false, false},
	} {
		if got := [2]bool{l.Image(url), l.Link(url)}; got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}
