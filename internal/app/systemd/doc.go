// Package systemd reports the state of this process to a service manager, by the protocol of
// sd_notify(3): a datagram of NAME=value lines to the socket that NOTIFY_SOCKET names. Without a
// manager that asks for it, nothing is done.
package systemd
