package media_test

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/internal/media"
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
		want       media.Medium
	}{
		"a picture":                         {"image/png", b64(dot.Bytes()), media.Medium{MIME: "image/png"}},
		"a picture without padding":         {"image/png", strings.TrimRight(b64(dot.Bytes()), "="), media.Medium{MIME: "image/png"}},
		"a picture in lines":                {"image/png", b64(dot.Bytes())[:20] + "\r\n" + b64(dot.Bytes())[20:], media.Medium{MIME: "image/png"}},
		"a type with a parameter":           {"image/png; x=y", b64(dot.Bytes()), media.Medium{MIME: "image/png"}},
		"a picture of another type":         {"image/jpeg", b64(dot.Bytes()), media.Medium{MIME: "image/png"}},
		"a page that is called a picture":   {"image/png", b64([]byte("<html><script>x</script>")), media.Medium{MIME: "image/png", Refused: "content whose bytes are not image/png"}},
		"markup of an unknown picture type": {"image/x-new", b64([]byte("\n <svg onload=x>")), media.Medium{MIME: "image/x-new", Refused: "content whose bytes are not image/x-new"}},
		"a drawing that can run scripts":    {"image/svg+xml", b64([]byte("<svg/>")), media.Medium{MIME: "image/svg+xml", Text: true}},
		"a page that is called a sound":     {"audio/mpeg", b64([]byte("<html>")), media.Medium{MIME: "audio/mpeg", Refused: "content whose bytes are not audio/mpeg"}},
		"a sound":                           {"audio/wav", b64([]byte("RIFF\x00\x00\x00\x00WAVEfmt ")), media.Medium{MIME: "audio/wav"}},
		"an image that fills the memory":    {"image/png", b64(huge), media.Medium{MIME: "image/png", Refused: "image of 65535 x 65535 pixels"}},
		"no base64":                         {"image/png", "<script>", media.Medium{MIME: "image/png", Refused: "content that is not base64"}},
		"a type that is not known":          {"application/x-thing", b64([]byte("anything")), media.Medium{MIME: "application/x-thing"}},
		"a page":                            {"Text/HTML; charset=utf-8", b64([]byte("x")), media.Medium{MIME: "text/html", Text: true}},
		"data":                              {"application/ld+json", b64([]byte("{}")), media.Medium{MIME: "application/ld+json", Text: true}},
		"a page of no type":                 {"", b64([]byte("\x00<svg>")), media.Medium{Text: true}},
		"nothing":                           {"image/png", "", media.Medium{MIME: "image/png", Refused: "content whose bytes are not image/png"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := media.Of(tt.mime, tt.data); got != tt.want {
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

func TestDecode(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	for in, want := range map[string]string{"<p>\u00e9": "<p>\u00e9", "\xff\xfe<\x00p\x00": "<p", "\xfe\xff\x00<\x00p": "<p"} {
		if got, ok := media.Decode(b64([]byte(in))); !ok || got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{"?", b64([]byte("\xff\x00"))} {
		if got, ok := media.Decode(in); ok {
			t.Errorf("%q is taken for the text %q", in, got)
		}
	}
}
