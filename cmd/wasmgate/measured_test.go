package main

import (
	"encoding/json"
	"net"
	"net/http"
	_ "net/http/pprof" // profiles of the gateway that is measured, on its socket
	"os"
	"runtime"
)

// serveMeasured makes this program wasmgate, if it was started as a gateway that is measured: it
// tells tests on a Unix socket what cannot be seen from outside. Profiles are there too, while a
// benchmark runs:
//
//	curl --unix-socket /tmp/BenchmarkGateway*/001/measured 'http://gateway/debug/pprof/profile?seconds=5' >cpu
//
// How long calls wait for locks is counted once somebody has asked for /locks:
//
//	curl --unix-socket .../measured http://gateway/locks
//	curl --unix-socket .../measured 'http://gateway/debug/pprof/mutex?seconds=5' >locks
func serveMeasured() {
	socket, ok := os.LookupEnv("WASMGATE_TEST_MEASURED")
	if !ok {
		return
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC()
		runtime.GC() // what pools keep goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(w).Encode(map[string]uint64{
			"goroutines": uint64(runtime.NumGoroutine()), "mallocs": m.Mallocs, "bytes": m.TotalAlloc, "heap": m.HeapAlloc + m.StackInuse,
		})
	})
	http.HandleFunc("/locks", func(http.ResponseWriter, *http.Request) { runtime.SetMutexProfileFraction(1) })
	go func() { panic(http.Serve(ln, nil)) }()
	main()
}
