// Package altered counts the results of tools in which the profile for prose has changed what
// acts, and names the tools whose results are changed so often that their operator should say
// what they are. It decides nothing: how a text looks never makes it source.
package altered
