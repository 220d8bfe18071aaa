// Package modules tests the commands for modules. It has tests only.
package modules
