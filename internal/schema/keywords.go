package schema

import "slices"

// namedSchemas are the keywords whose members are schemas, and holders those whose elements are, too.
var (
	namedSchemas = []string{"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"}
	holders      = append(slices.Clone(namedSchemas), "anyOf", "oneOf", "allOf", "prefixItems")
)

// dialects are the values of $schema.
var dialects = map[string]bool{
	"json-schema.org/draft-04/schema":      true,
	"json-schema.org/draft-06/schema":      true,
	"json-schema.org/draft-07/schema":      true,
	"json-schema.org/draft/2019-09/schema": true,
	"json-schema.org/draft/2020-12/schema": true,
}

// references are the keywords whose value is an address.
var references = map[string]bool{"$ref": true, "$dynamicRef": true, "$recursiveRef": true, "$schema": true}

// counts are the keywords that the validator reads as an int, of whatever
// number stands there.
var counts = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "minProperties": true,
	"maxProperties": true, "minContains": true, "maxContains": true,
}
