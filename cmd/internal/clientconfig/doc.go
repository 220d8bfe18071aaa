// Package clientconfig provides the commands that add the gateway to the settings of a client, and remove it.
package clientconfig
