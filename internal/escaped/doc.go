// Package escaped shows texts of others to people, on screens that would act on some characters.
package escaped
