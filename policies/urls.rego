# Pack urls: functions that compare URLs. All are undefined for what is not a URL
# that everybody reads alike: absolute, http, https, ws or wss, of printable ASCII
# (a name with other letters as xn--), without a user before the host, with the host
# in its one form (no octal or hexadecimal address, no dot at its end), and without
# . or .. in its path, written in whatever way.
package wasmgate.urls

# parse gives the parts of a URL: scheme, host, port, path, query and origin
# (RFC 6454). Scheme and host are in lower case, an IPv6 host is without brackets,
# the port is there even if it is the scheme's own, and the path begins with /.
parse(u) := wasmgate.url(u)

# host_is holds if the URL's host is the given one, and not one below it.
host_is(u, host) if parse(u).host == lower(host)

# domain_is holds if the URL's host is the given name, or one below it.
domain_is(u, domain) if host_is(u, domain)

domain_is(u, domain) if {
	domain != ""
	endswith(parse(u).host, concat("", [".", lower(domain)]))
}

# within holds if the URL has each of the given parts: scheme, host, port or origin;
# path is one below which it lies, in whole names. A part that is none of these, and
# a path alone, fit no URL.
within(u, parts) if {
	is_object(parts)
	count(object.remove(parts, ["scheme", "host", "port", "origin", "path"])) == 0
	count(object.filter(parts, ["host", "origin"])) > 0
	url := parse(u)
	every name, value in object.remove(parts, ["path"]) {
		url[name] == value
	}
	path_within(url.path, object.get(parts, "path", "/"))
}

path_within(path, root) if {
	startswith(root, "/")
	path == trim_suffix(root, "/")
}

path_within(path, root) if {
	startswith(root, "/")
	startswith(path, concat("", [trim_suffix(root, "/"), "/"]))
	not contains(path, "//")
}
