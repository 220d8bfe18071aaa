// Package systemd tells a service manager how this process does, by the protocol of
// sd_notify(3): a datagram of NAME=value lines to the socket that NOTIFY_SOCKET names.
// Without a manager that asks for it, nothing is done.
package systemd
