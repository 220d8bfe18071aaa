// Package variables replaces the environment variables in a text: ${NAME} and ${env:NAME},
// ${NAME:-default}, and $$ for a dollar. References to secrets, such as ${file:PATH}, are left for later.
package variables
