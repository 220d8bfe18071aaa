package config

import "github.com/wasmgate/wasmgate/internal/config/decode"

// A Secret is text that must not be shown: see [decode.Secret].
type Secret = decode.Secret
