// Package check judges single values of configuration files: texts, paths, URLs, headers, origins.
// A check returns what is wrong with a value, without quoting it, since the value may have come
// out of the environment.
//
// check.go has what all values are judged by, web.go URLs and what belongs to requests.
package check
