// Package variables replaces the environment variables in a text: ${NAME} and ${env:NAME},
// ${NAME:-default}, and $$ for a dollar.
package variables
