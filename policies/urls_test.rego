package wasmgate_test

import data.wasmgate.urls

good(u) if urls.host_is(u, "good.example")

test_urls_host_is if {
	good("http://good.example")
	good("https://good.example/")
	good("HTTPS://GOOD.Example:8443/a?b=c@d#e")
	good("wss://good.example/@evil.example")
	urls.host_is("https://good.example", "Good.Example")
	not good("https://sub.good.example")
	not good("https://good.example.evil.example")
	not good("https://evil.example/good.example")
	not good("https://evil.example?good.example")
	not good("https://evil.example#good.example")
}

test_urls_take_no_url_with_two_readings if {
	every u in [
		"http://good.example@evil.example", "http://good.example:80@evil.example/", "http://user@good.example", "http://@good.example",
		"http://good.example.", "http://good.example:", "http://good.example:0", "http://good.example:080", "http://good.example:99999",
		"http://good.example\\@evil.example", "http:\\\\good.example", "http:/good.example", "http:good.example", "//good.example", "good.example",
		"http://good.example\t", "ht\ttp://good.example", "http://good.example\r\nHost: evil.example", " http://good.example", "http://good.example/ a",
		"http://good%2eexample", "http://good.example%00.evil.example", "http://gооd.example", "http://good。example", "http://goo\u00add.example",
		"http://-good.example", "http://good..example", "http:///good.example", "javascript:alert(1)", "file://good.example/a", "data:,good.example",
		"http://good.example/a/../b", "http://good.example/a/%2e%2E/b", "http://good.example/a/..;x=y/b", "http://good.example/a/..%3bx=y/b", "http://good.example/a/./b",
		"http://good.example/a%2fb", "http://good.example/a%5cb", "http://good.example/%00", "http://good.example/%252e%252e/", "http://good.example/%61dmin", "http://good.example/a%5fb%7E", "http://good.example/%c0%ae/",
		"http://good.example/%ef%bc%8e", "http://good.example/%2", "http://good.example/%zz", "http://good.example/a\"b", "", 7, null,
	] {
		not urls.parse(u)
		not good(u)
		not urls.domain_is(u, "example")
		not urls.within(u, {"host": "good.example"})
	}
}

test_urls_know_addresses_in_one_form if {
	urls.host_is("http://127.0.0.1:8080/", "127.0.0.1")
	urls.host_is("http://[::1]/", "::1")
	urls.host_is("http://[2001:DB8:0::1]/", "2001:db8::1")
	every u in [
		"http://0177.0.0.1", "http://0x7f.0.0.1", "http://0x7f000001", "http://2130706433", "http://127.1", "http://127.0.0.01", "http://127.0.0.1.",
		"http://256.1.1.1", "http://1.2.3", "http://1.2.3.4.5", "http://[::ffff:127.0.0.1]", "http://[fe80::1%25eth0]", "http://[::1", "http://::1", "http://good.0x",
	] {
		not urls.parse(u)
	}
}

test_urls_parse if {
	urls.parse("HTTPS://Good.Example?q=1#f") == {"scheme": "https", "host": "good.example", "port": 443, "path": "/", "query": "q=1", "origin": "https://good.example"}
	urls.parse("http://[::1]:8080/a%20b") == {"scheme": "http", "host": "::1", "port": 8080, "path": "/a%20b", "query": "", "origin": "http://[::1]:8080"}
	urls.parse("https://xn--bcher-kva.example/").host == "xn--bcher-kva.example"
}

test_urls_domain_is if {
	urls.domain_is("https://good.example", "good.example")
	urls.domain_is("https://a.b.GOOD.example", "Good.example")
	not urls.domain_is("https://notgood.example", "good.example")
	not urls.domain_is("https://good.example", "")
	not urls.domain_is("https://good.example.evil.example", "good.example")
}

test_urls_within if {
	urls.within("https://good.example/v1/users?x=/", {"origin": "https://good.example", "path": "/v1"})
	urls.within("https://good.example/v1", {"origin": "https://good.example", "path": "/v1/"})
	urls.within("https://good.example:443/", {"scheme": "https", "host": "good.example", "port": 443})
	urls.within("https://good.example/x", {"host": "good.example", "path": "/"})
	not urls.within("https://good.example/v1beta", {"origin": "https://good.example", "path": "/v1"})
	not urls.within("https://good.example/v1//../x", {"origin": "https://good.example", "path": "/v1"})
	not urls.within("https://good.example//v1/x", {"origin": "https://good.example", "path": "/v1"})
	not urls.within("https://good.example/v1//x", {"origin": "https://good.example", "path": "/v1"})
	not urls.within("http://good.example/v1", {"origin": "https://good.example"})
	not urls.within("https://good.example:8443/", {"origin": "https://good.example"})
	not urls.within("https://good.example/v1", {"path": "/v1"})
	not urls.within("https://good.example/v1", {"host": "good.example", "path": ""})
	not urls.within("https://good.example/v1", {"host": "good.example", "paths": "/v1"})
	not urls.within("https://good.example/v1", {})
	not urls.within("https://good.example/v1", "https://good.example")
}
