// SPDX-License-Identifier: Apache-2.0

// shares-go SECONDS: as shares.c, in Go, on one locked thread.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

var sink uint64

func clockNs(clock uintptr) uint64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t.Sec)*1000000000 + uint64(t.Nsec)
}

// It keeps something on the stack: Go gives no frame to a function that needs none.
func spin(n, x uint64) uint64 {
	var pad [8]uint64
	for ; n > 0; n-- {
		pad[n&7] = x
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x + pad[x&7]
}

//go:noinline
func leafParse(n uint64) { sink += spin(n, sink) }

//go:noinline
func middleParse(n uint64) { leafParse(n); sink++ }

//go:noinline
func outerParse(n uint64) { middleParse(n); sink++ }

//go:noinline
func leafRender(n uint64) { sink += spin(n, sink) }

//go:noinline
func middleRender(n uint64) { leafRender(n); sink++ }

//go:noinline
func outerRender(n uint64) { middleRender(n); sink++ }

//go:noinline
func leafCompress(n uint64) { sink += spin(n, sink) }

//go:noinline
func middleCompress(n uint64) { leafCompress(n); sink++ }

//go:noinline
func outerCompress(n uint64) { middleCompress(n); sink++ }

//go:noinline
func leafFlush(n uint64) { sink += spin(n, sink) }

//go:noinline
func middleFlush(n uint64) { leafFlush(n); sink++ }

//go:noinline
func outerFlush(n uint64) { middleFlush(n); sink++ }

var names = []string{"Parse", "Render", "Compress", "Flush"}
var weights = []float64{0.50, 0.30, 0.15, 0.05}
var chains = []func(uint64){outerParse, outerRender, outerCompress, outerFlush}

//go:noinline
func workLoop(end time.Time, spent, done []uint64) {
	seed := uint64(88172645463325252)
	for time.Now().Before(end) {
		i := 0
		for k := range done {
			if float64(done[k])/weights[k] < float64(done[i])/weights[i] {
				i = k
			}
		}
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		turns := 1000000 + seed%2000000
		began := clockNs(3)
		chains[i](turns)
		done[i] += turns
		spent[i] += clockNs(3) - began
	}
}

func main() {
	runtime.LockOSThread()
	seconds := 5.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	spent := make([]uint64, len(chains))
	turns := make([]uint64, len(chains))
	workLoop(time.Now().Add(time.Duration(seconds*1e9)), spent, turns)
	var told []string
	for i, n := range names {
		told = append(told, fmt.Sprintf("\"runtime.main;main.main;main.workLoop;main.outer%s;main.middle%s;main.leaf%s\": %d",
			n, n, n, spent[i]))
	}
	fmt.Printf("{\"pid\": %d, \"cpu_ns\": %d, \"chains\": {%s}, \"turns\": [%d, %d, %d, %d]}\n", os.Getpid(), clockNs(2),
		strings.Join(told, ", "), turns[0], turns[1], turns[2], turns[3])
}
