package tools

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/tools/tool"
)

var hash = tool.Tool{
	Name:  "hash",
	Title: "Hash",
	Description: "Computes the checksum of a text or of base64-encoded bytes. " +
		"Give exactly one of text and base64. md5, sha1 and crc32 are for comparing with existing checksums, not for security.",
	InputSchema: []byte(`{"type":"object","properties":{
		"algorithm":{"type":"string","enum":["sha256","sha512","sha1","md5","crc32"],"default":"sha256","description":"The checksum to compute."},
		"text":{"type":"string","description":"The text to hash, as UTF-8 bytes."},
		"base64":{"type":"string","description":"The bytes to hash, in standard base64, padded or not."}},
		"additionalProperties":false}`),
	OutputSchema: []byte(`{"type":"object","properties":{
		"algorithm":{"type":"string","description":"The checksum that was computed."},
		"hex":{"type":"string","description":"The checksum in lower case hexadecimal."},
		"bytes":{"type":"integer","minimum":0,"description":"How many bytes were hashed."}},
		"required":["algorithm","hex","bytes"],"additionalProperties":false}`),
	Annotations: []byte(tool.ReadOnly),
	Run:         tool.Typed(runHash),
}

type hashIn struct {
	Algorithm string  `json:"algorithm"`
	Text      *string `json:"text"`
	Base64    *string `json:"base64"`
}

type hashOut struct {
	Algorithm string `json:"algorithm"`
	Hex       string `json:"hex"`
	Bytes     int    `json:"bytes"`
}

func runHash(in hashIn) (hashOut, error) {
	data, err := in.data()
	if err != nil {
		return hashOut{}, err
	}
	out := hashOut{Algorithm: in.Algorithm, Bytes: len(data)}
	switch in.Algorithm {
	case "", "sha256":
		sum := sha256.Sum256(data)
		out.Algorithm, out.Hex = "sha256", hex.EncodeToString(sum[:])
	case "sha512":
		sum := sha512.Sum512(data)
		out.Hex = hex.EncodeToString(sum[:])
	case "sha1":
		sum := sha1.Sum(data)
		out.Hex = hex.EncodeToString(sum[:])
	case "md5":
		sum := md5.Sum(data)
		out.Hex = hex.EncodeToString(sum[:])
	case "crc32":
		out.Hex = fmt.Sprintf("%08x", crc32.ChecksumIEEE(data))
	default:
		return hashOut{}, fmt.Errorf("argument algorithm: %q is none of sha256, sha512, sha1, md5, crc32", in.Algorithm)
	}
	return out, nil
}

func (in hashIn) data() ([]byte, error) {
	switch {
	case in.Text != nil && in.Base64 != nil:
		return nil, errors.New("arguments text and base64: give only one of them")
	case in.Text != nil:
		return []byte(*in.Text), nil
	case in.Base64 != nil:
		data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(*in.Base64, "="))
		if err != nil {
			return nil, fmt.Errorf("argument base64: %w", err)
		}
		return data, nil
	}
	return nil, errors.New("arguments text and base64: one of them is required")
}
