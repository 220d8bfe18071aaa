package wasmgate_test

import data.wasmgate.paths

test_paths_within_compares_whole_names if {
	paths.within("/srv/a", "/srv/a")
	paths.within("/srv/a/b.txt", "/srv/a")
	paths.within("/srv/a/b.txt", "/srv/a/")
	paths.within("/srv/a", "/")
	not paths.within("/srv/ab", "/srv/a")
	not paths.within("/srv", "/srv/a")
	not paths.within("/srv/A", "/srv/a")
}

test_paths_within_knows_drives if {
	paths.within(`C:\srv\a\b`, `c:\srv\a`)
	paths.within(`C:\srv\a\b`, `C:/srv/a/`)
	paths.within(`C:\srv`, `C:\`)
	not paths.within(`D:\srv\a\b`, `C:\srv\a`)
	not paths.within(`C:\srv\a\..\b`, `C:\srv`)
	not paths.within(`C:\srv/a`, `C:\srv`)
	not paths.within(`C:\srv\a:stream`, `C:\srv`)
	not paths.within(`C:\srv\PROGRA~1`, `C:\srv`)
	not paths.within(`C:\srv\a.`, `C:\srv`)
	not paths.within(`C:srv`, `C:\`)
	not paths.within(`\\host\share\a`, `\\host\share`)
}

test_paths_within_takes_no_path_with_two_readings if {
	every p in [
		"/srv/a/../b", "/srv/a/..", "/srv/a/./b", "/srv/a//b", "//srv/a/b", "/srv/a/b/", "/srv/a/", "srv/a/b", "", "/srv/a/%2e%2e/b",
		"/srv/a/%252e%252e/b", "/srv/a/..%2fb", `/srv/a\..\b`, `/srv/a\b`, "/srv/a/\u0000", "/srv/a/b\n", "/srv/a/\u202eb", "/srv/a/\uff0e\uff0e/b",
		"/srv/a/..\uff0fb", "/srv/a\u2215b", "~/srv/a", "file:///srv/a/b", 7, null, ["/srv/a"],
	] {
		not paths.within(p, "/srv/a")
		not paths.canonical(p)
	}
}

test_paths_within_takes_no_root_with_two_readings if {
	every root in ["", "srv", "/srv/..", "/srv//a", "/srv/a//", 7] {
		not paths.within("/srv/a", root)
	}
}

test_paths_within_any if {
	paths.within_any("/srv/b/c", ["/srv/a", "/srv/b"])
	not paths.within_any("/srv/bc", ["/srv/a", "/srv/b"])
	not paths.within_any("/srv/b", [])
}

test_paths_canonical if paths.canonical("/srv/a b/ü.txt")
