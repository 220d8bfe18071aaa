// Package paused keeps what is paused over a restart: what somebody has stopped does not begin
// again because a process has died. "" stands for everything.
package paused
