package config

import (
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// Confine says what the command of a server may do. Paths are absolute; zero
// limits mean those that package confine documents.
type Confine struct {
	Read       []string      `key:"read places"`
	Write      []string      `key:"write places"`
	Execute    []string      `key:"execute places"`
	Connect    []uint16      `key:"connect ports"` // TCP, on any host
	DNS        bool          `key:"dns"`
	Memory     int64         `key:"memory 16MiB..1024GiB"`
	Processes  int           `key:"processes 1..1048576"`
	Files      int           `key:"files 8..1048576"`
	CPU        time.Duration `key:"cpu seconds"` // 0: without end
	BestEffort bool          `key:"best_effort"` // start it also where not all of this can be enforced
}

const maxCPU = 365 * 24 * time.Hour

func ports(to *[]uint16) decode.Reader {
	return func(v decode.Value) {
		for item := range v.List() {
			var port int
			if decode.Count(&port, 1, 65_535)(item); port != 0 {
				*to = append(*to, uint16(port))
			}
		}
	}
}

// seconds reads a duration of whole seconds.
func seconds(to *time.Duration) decode.Reader {
	return decode.Measure(to, "s", func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil || v < time.Second || v > maxCPU || v%time.Second != 0 {
			return 0, errors.New("is not a duration of whole seconds, such as 60s")
		}
		return v, nil
	})
}
