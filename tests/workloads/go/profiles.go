// SPDX-License-Identifier: Apache-2.0

// profiles FOLDER: does a little of everything that Go's runtime profiles, and writes each profile there: NAME.pb.gz, NAME.txt
// (debug=1), dump.txt (goroutines, debug=2), and handles.pb.gz, a profile of its own. `go tool pprof` says what stands in them.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func keep(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 4096))
	}
}

//go:noinline
func drop(n int) {
	for i := 0; i < n; i++ {
		b := make([]byte, 8192)
		runtime.KeepAlive(&b)
	}
}

//go:noinline
func burn(d time.Duration) {
	for t := time.Now(); time.Since(t) < d; {
	}
}

//go:noinline
func park(c chan int) { <-c }

//go:noinline
func contend(l sync.Locker, done *sync.WaitGroup) {
	for i := 0; i < 20; i++ {
		l.Lock()
		time.Sleep(100 * time.Microsecond)
		l.Unlock()
	}
	done.Done()
}

func contendAll() {
	var mutex sync.Mutex
	var both sync.RWMutex
	var done sync.WaitGroup
	for _, l := range []sync.Locker{&mutex, &both, both.RLocker()} {
		for i := 0; i < 3; i++ {
			done.Add(1)
			go contend(l, &done)
		}
	}
	done.Wait()
}

func write(p *pprof.Profile, path string, debug int) {
	f, err := os.Create(path)
	if err == nil {
		err = p.WriteTo(f, debug)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

func main() {
	folder := os.Args[1] + "/"
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	cpu, err := os.Create(folder + "cpu.pb.gz")
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(cpu)
	burn(300 * time.Millisecond)
	pprof.StopCPUProfile()
	cpu.Close()
	keep(2000)
	drop(2000)
	contendAll()
	c := make(chan int)
	for i := 0; i < 7; i++ {
		go park(c)
	}
	for i := 0; i < 100; i++ {
		runtime.Gosched()
	}
	runtime.GC()
	for _, p := range pprof.Profiles() {
		write(p, folder+p.Name()+".pb.gz", 0)
		write(p, folder+p.Name()+".txt", 1)
	}
	write(pprof.Lookup("goroutine"), folder+"dump.txt", 2)
	handles := pprof.NewProfile("example.com/handles")
	handles.Add(c, 0)
	write(handles, folder+"handles.pb.gz", 0)
}
