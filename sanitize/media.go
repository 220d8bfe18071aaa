package sanitize

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"strings"
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

// Media says why a content of a media type, in base64, must not be shown, or "":
// its bytes are of another type, it holds markup that runs, or it would need
// more memory than its size lets expect. Types that it does not know pass,
// unless they are said to be images.
func Media(mime, data string) string {
	mime, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(mime)), ";")
	mime = strings.TrimSpace(mime)
	head, err := decoded(data)
	if err != nil {
		return "content that is no base64"
	}
	if mime == "image/svg+xml" {
		return "image that can run scripts"
	}
	known, ok := signatures[mime]
	if !ok {
		if strings.HasPrefix(mime, "image/") && isMarkup(head) {
			return "image whose bytes are markup"
		}
		return ""
	}
	if !begins(head, known) {
		return "content whose bytes are not " + mime
	}
	if c, _, err := image.DecodeConfig(bytes.NewReader(head)); err == nil && int64(c.Width)*int64(c.Height) > maxPixels {
		return fmt.Sprintf("image of %d x %d pixels", c.Width, c.Height)
	}
	return ""
}

// decoded returns the first bytes of a base64 text, padded or not.
func decoded(data string) ([]byte, error) {
	head := data[:min(len(data), sniffed*4/3)]
	head = strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, head)
	head = strings.TrimRight(head[:len(head)-len(head)%4], "=") // a part of four tells nothing
	return base64.RawStdEncoding.DecodeString(head)
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
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte("<"))
}

// Resource reports whether a link to a resource may be passed on. Servers have
// schemes of their own; those that a browser or an editor acts on are none of
// them. A list of targets holds for http and https.
func (l Links) Resource(uri string) bool {
	t := plainTarget(uri)
	scheme, _, ok := strings.Cut(t, ":")
	switch strings.ToLower(scheme) {
	case "javascript", "vbscript", "livescript", "data", "about", "blob", "filesystem", "view-source", "vscode", "vscode-insiders", "cursor":
		return false
	case "http", "https":
		return l.allow == nil && !strings.Contains(t, `\`) || l.keeps(uri, false)
	}
	return ok && t == uri
}
