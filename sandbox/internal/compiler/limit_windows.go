package compiler

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

func executable() (string, error) { return os.Executable() }

func own(fs.FileInfo) bool { return true }

// environment is what Windows itself needs.
func environment() []string { return []string{"SystemRoot=" + os.Getenv("SystemRoot")} }

func prepare(c *exec.Cmd) {
	c.SysProcAttr = &windows.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.BELOW_NORMAL_PRIORITY_CLASS}
}

func (limits) restrict() error { return nil }

// confine puts a child into a job object, before it gets its order. The kernel ends it
// when the handle closes.
func (l limits) confine(p *os.Process) (release func(), err error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{ProcessMemoryLimit: uintptr(l.memory)}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY | windows.JOB_OBJECT_LIMIT_PROCESS_TIME
	info.BasicLimitInformation.PerProcessUserTimeLimit = int64(l.cpu / (100 * time.Nanosecond))
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var aerr error
		err = p.WithHandle(func(h uintptr) { aerr = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
		err = errors.Join(err, aerr)
	}
	if err != nil {
		return nil, errors.Join(err, windows.CloseHandle(job))
	}
	return func() { _ = windows.CloseHandle(job) }, nil
}
