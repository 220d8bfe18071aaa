package login

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// claims are those of ID tokens and of ID-JAGs.
type claims struct {
	Issuer   string  `json:"iss"`
	Subject  string  `json:"sub"`
	Audience several `json:"aud"`
	Party    string  `json:"azp"`
	Client   string  `json:"client_id"`
	Resource several `json:"resource"`
	JTI      string  `json:"jti"`
	Exp      float64 `json:"exp"`
}

func (c *claims) ends() time.Time {
	return time.Unix(int64(min(max(c.Exp, 0), 1<<40)), 0)
}

// several are texts. JSON has a single one also without a list.
type several []string

func (s *several) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*s = several{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(s))
}

// signatures are the algorithms of tokens that are read here and verified elsewhere.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.HS256, jose.HS384, jose.HS512,
}

// readJWT reads a signed token without verifying it. Its errors have no word of it.
func readJWT(text string) (typ string, c *claims, err error) {
	signed, err := jose.ParseSignedCompact(text, signatures)
	if err != nil {
		return "", nil, errors.New("not a signed JWT")
	}
	if json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &c) != nil || c == nil {
		return "", nil, errors.New("the claims are not a JSON object")
	}
	typ, _ = signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string)
	return typ, c, nil
}
