//go:build amd64 || arm64

package confine

// The base set is what programs need to start and what tells nothing of their
// user. What does not exist is passed over. A system that keeps its libraries
// elsewhere (Nix, Guix, Homebrew, pyenv, nvm) has them named in the rules.

// baseExecute returns what every confined child may read and execute: the
// system's programs and libraries.
func baseExecute() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// baseRead returns what every confined child may read: how names and
// certificates are found, the clock, who the users are, and what runtimes ask
// about the machine. Of /proc it holds single files, and none that tells of other
// processes: their command lines, their connections (/proc/self/net, which is also in
// each folder of /proc/self/task), what is mounted where.
func baseRead() []string {
	var own []string
	for _, name := range []string{
		"attr", "auxv", "cgroup", "cmdline", "comm", "coredump_filter", "environ", "fd", "fdinfo", "gid_map", "io", "limits", "loginuid",
		"map_files", "maps", "mem", "numa_maps", "oom_adj", "oom_score", "oom_score_adj", "pagemap", "personality", "sched", "schedstat",
		"sessionid", "setgroups", "smaps", "smaps_rollup", "stat", "statm", "status", "syscall", "timerslack_ns", "uid_map", "wchan",
	} {
		own = append(own, "/proc/self/"+name)
	}
	return append(own,
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies",
		"/etc/resolv.conf", "/run/systemd/resolve", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
		"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/os-release", "/etc/debian_version",
		"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
		"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version", "/proc/filesystems",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count", "/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/ngroups_max",
		"/proc/sys/kernel/osrelease", "/proc/sys/kernel/random", "/proc/sys/net/core/somaxconn",
		"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
	)
}

// baseWrite may be read and written.
func baseWrite() []string { return []string{"/dev/null"} }
