package confine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

func superviseIfAsked() {}

func supervised() (ok bool, why string) { return true, "" }

// job is a child in a job object. The kernel ends all processes of a job when
// its last handle closes, and the gateway holds the only one.
type job struct {
	cmd *exec.Cmd

	mu     sync.Mutex
	handle windows.Handle // 0 once closed
}

func startTree(_ context.Context, x *exec.Cmd, _ constraints) (tree, error) {
	handle, err := newJob()
	if err != nil {
		return nil, fmt.Errorf("cannot create a job object for the server: %w", err)
	}
	// Suspended, so that it cannot start a process before it is in the job.
	x.SysProcAttr = &windows.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := x.Start(); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(handle))
	}
	var aerr error
	err = x.Process.WithHandle(func(h uintptr) { aerr = windows.AssignProcessToJobObject(handle, windows.Handle(h)) })
	if err = errors.Join(err, aerr); err == nil {
		err = resume(uint32(x.Process.Pid))
	}
	if err != nil {
		_ = x.Process.Kill()
		_ = x.Wait()
		return nil, errors.Join(fmt.Errorf("cannot put the server into its job object: %w", err), windows.CloseHandle(handle))
	}
	return &job{cmd: x, handle: handle}, nil
}

func newJob() (windows.Handle, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return 0, errors.Join(err, windows.CloseHandle(handle))
	}
	return handle, nil
}

// resume lets the only thread of a process that was created suspended run.
func resume(pid uint32) error {
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(threads)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("the first thread of process %d was not found: %w", pid, err)
}

// terminate reaches the processes that share the gateway's console, if any.
func (j *job) terminate() {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(j.cmd.Process.Pid))
}

func (j *job) kill() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.handle != 0 {
		_ = windows.TerminateJobObject(j.handle, 1)
	}
}

func (j *job) wait() error {
	err := j.cmd.Wait()
	j.kill() // what the child left behind
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = windows.CloseHandle(j.handle)
	j.handle = 0
	switch state := j.cmd.ProcessState; {
	case state == nil:
		return err
	case state.ExitCode() != 0:
		return &ExitError{Code: state.ExitCode()}
	}
	return nil
}
