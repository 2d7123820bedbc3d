// SPDX-License-Identifier: Apache-2.0

// servego: a server of HTTP in Go whose endpoints are slow for reasons that are known, as serves.c: GET /burn computes, and lets other goroutines
// run between two steps; GET /lock computes a little and waits for a lock of a file that another goroutine holds for 40 ms, so that its thread waits;
// GET /park waits for a mutex that another one holds, so that no thread waits; GET /helped has another goroutine compute; GET /quick is answered at once.
//
// It prints its port, and ends with its standard input. Option: -tls CERT KEY.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const planned = 40 * time.Millisecond

var (
	sink  [64]uint64
	steps int // of burning: they take about what is planned
)

//go:noinline
func step(x uint64) uint64 {
	for i := 0; i < 200000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func serveBurning(n int) {
	x := uint64(1)
	for i := 0; i < n; i++ {
		x = step(x)
		runtime.Gosched()
	}
	sink[0] += x
}

//go:noinline
func helperBurning(n int) {
	x := uint64(1)
	for i := 0; i < n; i++ {
		x = step(x)
		runtime.Gosched()
	}
	sink[8] += x
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

//go:noinline
func serveLocked() {
	x := uint64(1)
	for i := 0; i < steps/8; i++ {
		x = step(x)
		runtime.Gosched()
	}
	sink[16] += x
	mine, err := os.CreateTemp("", "servego")
	check(err)
	defer os.Remove(mine.Name())
	defer mine.Close()
	other, err := os.Open(mine.Name())
	check(err)
	check(syscall.Flock(int(other.Fd()), syscall.LOCK_EX))
	time.AfterFunc(planned, func() { other.Close() })
	check(syscall.Flock(int(mine.Fd()), syscall.LOCK_EX))
}

//go:noinline
func serveParked() {
	var m sync.Mutex

	m.Lock()
	time.AfterFunc(planned, m.Unlock)
	m.Lock()
}

//go:noinline
func serveHelped() {
	done := make(chan bool)

	go func() {
		helperBurning(steps)
		done <- true
	}()
	<-done
}

func threadCPU() time.Duration {
	var t syscall.Timespec

	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&t)), 0) // CLOCK_THREAD_CPUTIME_ID
	return time.Duration(t.Nano())
}

// How many steps take as long as is planned: of the fastest of some.
func calibrate() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := time.Hour
	for i := 0; i < 5; i++ {
		begin := threadCPU()
		for k := uint64(0); k < 10; k++ {
			sink[24] += step(k)
		}
		if took := threadCPU() - begin; took < least {
			least = took
		}
	}
	steps = int(10*planned/least) + 1
}

func main() {
	calibrate()
	for path, serve := range map[string]func(){"/burn": func() { serveBurning(steps) }, "/lock": serveLocked, "/park": serveParked, "/helped": serveHelped, "/quick": func() {}} {
		serve := serve
		http.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			serve()
			io.WriteString(w, "ok")
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	go func() {
		if len(os.Args) > 3 {
			check(http.ServeTLS(l, nil, os.Args[2], os.Args[3]))
		}
		check(http.Serve(l, nil))
	}()
	io.Copy(io.Discard, os.Stdin)
}
