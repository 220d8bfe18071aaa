package show

import (
	"os/exec"
	"runtime"
	"time"
)

// OpenBrowser opens a link as the system does. A browser that runs on is none that has failed.
func OpenBrowser(url string) error {
	var c *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		c = exec.Command("open", url)
	case "windows":
		c = exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	default:
		c = exec.Command("xdg-open", url)
	}
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Second):
		return nil
	}
}
