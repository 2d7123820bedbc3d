// SPDX-License-Identifier: Apache-2.0

// heapwork: a Go program whose heap is known. It allocates heavily in ways that leave nothing behind, and leaks a little
// in one place; on a line of stdin it comes to rest, writes what its own runtime says, and tells "at rest FILE"; on the
// next it goes on. Values that it keeps are told at its end.
//
//	heapwork DIR [-rate BYTES] [-leak BYTES] [-hold MB] [-busy] [-grow MB]   DIR: where profiles are written
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"
)

var (
	leaked  [][]byte
	ring    [64][]byte
	names   = map[int]string{}
	numbers = map[int]string{}
	sink    int
)

//go:noinline
func leak(size int) {
	leaked = append(leaked, make([]byte, size)) // LEAK
}

// A map that splits its tables in two: one call of one size to people, two places of the runtime, and two records.
//
//go:noinline
func twins() {
	for i := 0; i < 4000; i++ {
		numbers[i] = "a number"
	}
}

//go:noinline
func innocentBuffers(round int) {
	var b bytes.Buffer
	for i := 0; i < 500; i++ {
		fmt.Fprintf(&b, "%d %d;", round, i)
	}
	sink += len(strings.Split(b.String(), ";"))
}

//go:noinline
func innocentRing(round int) {
	ring[round%len(ring)] = make([]byte, 32<<10)
}

//go:noinline
func innocentMap(round int) {
	names[round%1000] = fmt.Sprint("name ", round)
}

// No garbage is collected until it goes on: what the profile says stays so.
func rest(dir string, n int) {
	debug.SetGCPercent(-1)
	runtime.GC()
	runtime.GC()
	path := filepath.Join(dir, fmt.Sprintf("own-%d.pb.gz", n))
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	pprof.WriteHeapProfile(f)
	f.Close()
	fmt.Println("at rest", path)
}

// What the runtime's own profile says is in use, after each step.
func step(mb int) {
	for i := 0; i < mb; i++ {
		leak(1 << 20)
		for j := range leaked[len(leaked)-1] {
			leaked[len(leaked)-1][j] = 1
		}
	}
	runtime.GC()
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 10000)
	n, _ := runtime.MemProfile(records, true)
	held := int64(0)
	for _, r := range records[:n] {
		held += r.InUseBytes()
	}
	fmt.Println("held", held)
	time.Sleep(50 * time.Millisecond)
}

func work(round, size int) {
	innocentBuffers(round)
	innocentRing(round)
	innocentMap(round)
	if round%4 == 0 {
		leak(size)
	}
}

func main() {
	rate := flag.Int("rate", 4096, "runtime.MemProfileRate")
	size := flag.Int("leak", 8000, "bytes that each leak leaves")
	hold := flag.Int("hold", 0, "MB to hold from the beginning")
	busy := flag.Bool("busy", false, "work without a pause")
	grow := flag.Int("grow", 0, "MB to hold more at each step, telling what is held, until it is killed")
	flag.Parse()
	if *rate >= 0 {
		runtime.MemProfileRate = *rate
	}
	for i := 0; i < *hold; i++ {
		leak(1 << 20)
	}
	for *grow > 0 {
		step(*grow)
	}
	twins()
	lines := make(chan bool)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- true
		}
		close(lines)
	}()
	fmt.Println("ready")
	for round, n := 0, 0; ; round++ {
		select {
		case _, more := <-lines:
			if !more {
				return
			}
			n++
			rest(flag.Arg(0), n)
			if _, more = <-lines; !more {
				return
			}
			debug.SetGCPercent(100)
		default:
			work(round, *size)
			if !*busy {
				time.Sleep(time.Millisecond)
			}
		}
	}
}
