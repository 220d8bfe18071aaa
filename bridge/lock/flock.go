package lock

import (
	"errors"
	"time"
)

const (
	lockTime  = 5 * time.Second // what is done under a lock takes milliseconds
	lockEvery = 5 * time.Millisecond
)

var errHeld = errors.New("another process has it locked; try again")

// waitLock tries until it has a lock. Try returns false if another has it.
func waitLock(try func() (bool, error)) error {
	giveUp := time.After(lockTime)
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-giveUp:
			return errHeld
		}
	}
}
