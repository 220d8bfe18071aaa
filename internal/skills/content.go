package skills

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// mediaType is one that is passed on.
var mediaType = regexp.MustCompile(`^[A-Za-z0-9.+-]{1,64}/[A-Za-z0-9.+-]{1,64}(; ?charset=[A-Za-z0-9-]{1,32})?$`)

// Read returns the bytes of a file in a result of resources/read. own is the URI that the server was
// asked for. The error says why the file is not what its skill says.
func Read(file gate.SkillFile, own string, result doc.Doc) (content []byte, err error) {
	contents := result.Get("contents")
	one := contents.At("/0")
	if doc.Len(contents) != 1 || one.Get("uri").Text() != own {
		return nil, errors.New("the server answered with a different file")
	}
	if text := one.Get("text"); text.Kind() == doc.String {
		content = []byte(text.Text())
	} else {
		blob := one.Get("blob")
		content, err = base64.StdEncoding.DecodeString(blob.Text())
		if err != nil || blob.Kind() != doc.String {
			return nil, errors.New("the file has neither a text nor a blob in base64")
		}
	}
	if int64(len(content)) != file.Size {
		return nil, fmt.Errorf("the file has %d bytes, but its skill declares %d", len(content), file.Size)
	}
	if sum := sha256.Sum256(content); "sha256:"+hex.EncodeToString(sum[:]) != file.Digest {
		return nil, fmt.Errorf("the file has the digest sha256:%x, but its skill declares %s", sum, file.Digest)
	}
	return content, nil
}

// Passed returns a result that [Read] accepts as clients get it under a URI.
func Passed(uri string, result doc.Doc) doc.Doc {
	one, member := result.At("/contents/0"), "text"
	if one.Get(member).Kind() != doc.String {
		member = "blob"
	}
	passed := doc.Must(`{}`).With("uri", doc.AppendString(nil, uri)).With(member, one.Get(member).Raw())
	if mime := one.Get("mimeType"); mediaType.MatchString(mime.Text()) {
		passed = passed.With("mimeType", mime.Raw())
	}
	return doc.Must(`{"contents":[` + passed.String() + `]}`)
}
