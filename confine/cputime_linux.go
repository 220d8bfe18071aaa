package confine

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// cpuTime is what a process and its descendants have had of processors so far, those too
// that have ended (proc_pid_stat(5), utime to cstime, in ticks of 10 ms).
func cpuTime(root int) (sum time.Duration) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	ticks, parents := map[int]int{}, map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		stat := string(b)
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // from field 3 on
		if len(fields) < 17-2 {
			continue // it has ended
		}
		parents[pid], _ = strconv.Atoi(fields[4-3])
		for _, field := range fields[14-3 : 17-2] {
			n, _ := strconv.Atoi(field)
			ticks[pid] += n
		}
	}
	for pid := range ticks {
		for up, steps := pid, 0; steps < len(parents); up, steps = parents[up], steps+1 {
			if up == root {
				sum += time.Duration(ticks[pid]) * 10 * time.Millisecond
				break
			}
			if up == 0 {
				break
			}
		}
	}
	return sum
}

func (s *supervision) cpuTime() time.Duration { return cpuTime(s.cmd.Process.Pid) }
