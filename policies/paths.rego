# Pack paths: functions that compare paths of files. All are undefined for what is
# not an absolute path with one reading: one that holds "..", ".", "//", a mixture
# of / and \, a percent-encoding, a character that is not simply shown, or a slash
# at its end. They compare names, and cannot see links.
package wasmgate.paths

# within holds if p is root, or lies below it: /srv/a/x is within /srv/a, /srv/ab is
# not.
within(p, root) if wasmgate.path_within(p, root)

# within_any holds if p is within one of the roots.
within_any(p, roots) if {
	some root in roots
	wasmgate.path_within(p, root)
}

# canonical holds if p has one reading.
canonical(p) if wasmgate.path_within(p, p)
