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
	tests := map[string]struct{ mime, data, why string }{
		"a picture":                         {"image/png", b64(dot.Bytes()), ""},
		"a picture without padding":         {"image/png", strings.TrimRight(b64(dot.Bytes()), "="), ""},
		"a picture in lines":                {"image/png", b64(dot.Bytes())[:20] + "\r\n" + b64(dot.Bytes())[20:], ""},
		"a type with a parameter":           {"image/png; x=y", b64(dot.Bytes()), ""},
		"a picture of another type":         {"image/jpeg", b64(dot.Bytes()), "content whose bytes are not image/jpeg"},
		"a page that is called a picture":   {"image/png", b64([]byte("<html><script>x</script>")), "content whose bytes are not image/png"},
		"markup of an unknown picture type": {"image/x-new", b64([]byte("\n <svg onload=x>")), "image whose bytes are markup"},
		"a drawing that can run scripts":    {"image/svg+xml", b64([]byte("<svg/>")), "image that can run scripts"},
		"a page that is called a sound":     {"audio/mpeg", b64([]byte("<html>")), "content whose bytes are not audio/mpeg"},
		"a sound":                           {"audio/wav", b64([]byte("RIFF\x00\x00\x00\x00WAVEfmt ")), ""},
		"an image that fills the memory":    {"image/png", b64(huge), "image of 65535 x 65535 pixels"},
		"no base64":                         {"image/png", "<script>", "content that is no base64"},
		"a type that is not known":          {"application/x-thing", b64([]byte("anything")), ""},
		"nothing":                           {"image/png", "", "content whose bytes are not image/png"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if why := sanitize.Media(tt.mime, tt.data); why != tt.why {
				t.Errorf("got %q, want %q", why, tt.why)
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
