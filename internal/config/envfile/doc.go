// Package envfile reads files of variables: NAME=value lines, empty ones and those that begin with # apart.
package envfile
