// Package media finds out what content that is sent as bytes really is, whatever type it is
// declared to have.
package media

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
)

// maxPixels bounds an image: a decoder needs four bytes for each pixel, however
// few bytes the image has.
const maxPixels = 64 << 20

// sniffed is how much of a content is looked at, in bytes: enough for the
// signatures, and for the sizes of images.
const sniffed = 64 << 10

// A signature is how the bytes of a media type begin.
type signature struct {
	at    int
	bytes string
}

// signatures are those of the types that clients show or play, and of what is
// sent under their names; a type may have several (WHATWG MIME Sniffing, 6).
var signatures = map[string][]signature{
	"image/png":        {{0, "\x89PNG\r\n\x1a\n"}},
	"image/jpeg":       {{0, "\xff\xd8\xff"}},
	"image/jpg":        {{0, "\xff\xd8\xff"}},
	"image/gif":        {{0, "GIF87a"}, {0, "GIF89a"}},
	"image/webp":       {{8, "WEBP"}},
	"image/bmp":        {{0, "BM"}},
	"image/tiff":       {{0, "II*\x00"}, {0, "MM\x00*"}},
	"image/x-icon":     {{0, "\x00\x00\x01\x00"}},
	"image/avif":       {{4, "ftypavif"}, {4, "ftypavis"}, {4, "ftypmif1"}},
	"image/heic":       {{4, "ftyphei"}, {4, "ftypmif1"}, {4, "ftyphev"}},
	"audio/mpeg":       {{0, "ID3"}, {0, "\xff\xfb"}, {0, "\xff\xf3"}, {0, "\xff\xf2"}, {0, "\xff\xfa"}},
	"audio/mp3":        {{0, "ID3"}, {0, "\xff\xfb"}, {0, "\xff\xf3"}, {0, "\xff\xf2"}, {0, "\xff\xfa"}},
	"audio/wav":        {{8, "WAVE"}},
	"audio/x-wav":      {{8, "WAVE"}},
	"audio/wave":       {{8, "WAVE"}},
	"audio/ogg":        {{0, "OggS"}},
	"audio/flac":       {{0, "fLaC"}},
	"audio/aac":        {{0, "\xff\xf1"}, {0, "\xff\xf9"}},
	"audio/mp4":        {{4, "ftyp"}},
	"audio/webm":       {{0, "\x1a\x45\xdf\xa3"}},
	"application/pdf":  {{0, "%PDF-"}},
	"application/zip":  {{0, "PK\x03\x04"}, {0, "PK\x05\x06"}},
	"application/gzip": {{0, "\x1f\x8b"}},
}

// A Medium is the real type of content that is sent as bytes.
type Medium struct {
	// MIME is the media type by its bytes, where they tell; else the one it was
	// declared to have, in lower case and without parameters.
	MIME string
	// Text says that programs which open it read text: it has to be decoded and treated as a text
	// of that media type. An SVG is text, too, and no longer an image once something was changed in
	// it.
	Text bool
	// Refused says in a few words why it must not be shown; "" if it may.
	Refused string
}

// Of judges a content, in base64, that is said to have a media type, or none
// (""). An image whose bytes are those of another kind of image is called by its
// right name. What is no image but is called one, and what would need more memory
// than its size lets expect, is refused. Other types that are not known pass.
func Of(mime, data string) Medium {
	mime, _, _ = strings.Cut(strings.ToLower(mime), ";")
	m := Medium{MIME: strings.TrimSpace(mime)}
	head, err := decoded(data[:min(len(data), sniffed*4/3)], true)
	if err != nil {
		m.Refused = "content that is not base64"
		return m
	}
	known, ok := signatures[m.MIME]
	picture := strings.HasPrefix(m.MIME, "image/")
	switch {
	case isTextType(m.MIME):
		m.Text = true
	case ok && begins(head, known):
	case picture && imageType(head) != "":
		m.MIME = imageType(head)
	case picture && isMarkup(head), ok:
		m.Refused = "content whose bytes are not " + m.MIME
	default:
		m.Text = isMarkup(head)
	}
	if w, h := pixels(head); w*h > maxPixels {
		m.Refused = fmt.Sprintf("image of %d x %d pixels", w, h)
	}
	return m
}

// Decode returns the text that a content in base64 is: of UTF-8, or of UTF-16 with
// its mark. It is false for what is neither.
func Decode(data string) (text string, ok bool) {
	b, err := decoded(data, false)
	if err != nil {
		return "", false
	}
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		b, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(b)
	}
	return string(b), err == nil && utf8.Valid(b)
}

// textTypes are the media types of texts, in addition to text/ and those that end with their
// syntax.
var textTypes = []string{
	"application/xml", "application/json", "application/javascript", "application/x-javascript", "application/ecmascript", "application/typescript",
	"application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/graphql", "application/x-sh", "application/x-httpd-php",
	"image/svg", "image/x-svg",
}

func isTextType(mime string) bool {
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "+json") || slices.Contains(textTypes, mime)
}

// imageType returns the media type of an image by its bytes, or "".
func imageType(head []byte) string {
	for _, mime := range []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/x-icon", "image/avif", "image/heic"} {
		if begins(head, signatures[mime]) {
			return mime
		}
	}
	return ""
}

// pixels returns the size of an image that its header tells, or zeros.
func pixels(head []byte) (width, height int64) {
	c, _, err := image.DecodeConfig(bytes.NewReader(head))
	if err != nil {
		return 0, 0
	}
	return int64(c.Width), int64(c.Height)
}

// decoded returns the bytes of a base64 text, padded or not, which may have been cut.
func decoded(data string, cut bool) ([]byte, error) {
	data = strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, data)
	data = strings.TrimRight(data, "=")
	if cut && len(data)%4 == 1 {
		data = data[:len(data)-1]
	}
	return base64.RawStdEncoding.DecodeString(data)
}

func begins(head []byte, known []signature) bool {
	for _, s := range known {
		if len(head) >= s.at+len(s.bytes) && string(head[s.at:s.at+len(s.bytes)]) == s.bytes {
			return true
		}
	}
	return false
}

func isMarkup(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, "\x00 \t\r\n\ufeff"), []byte("<"))
}
