// Package escaped shows texts of strangers to people, on screens and in clients that would act on
// some characters.
package escaped
