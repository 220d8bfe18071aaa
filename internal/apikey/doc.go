// Package apikey composes the gateway's API keys and recognizes them in any text: a
// prefix, an id, a secret and a checksum. It has no list of the keys that exist.
package apikey
