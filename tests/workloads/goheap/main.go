// SPDX-License-Identifier: Apache-2.0

// goheap allocates, blocks and contends in known places, comes to rest, and writes down what the runtime itself says of
// its memory, block and mutex profiles. Garbage collection is off from then on, so that a reader finds the same.
//
//	goheap [-rate BYTES] [-sites N] [-threads N] DIR
//
// DIR gets profile.json (records with program counters and the names of their frames), heap.pb.gz, block.pb.gz and
// mutex.pb.gz. Then a line on stdout; each line on stdin asks for one thing: "again" allocates more and writes all
// anew, "churn" allocates and collects until the end of input, the end of input ends it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

var (
	rate    = flag.Int("rate", 4096, "MemProfileRate; 0: off; below 0: as it is")
	sites   = flag.Int("sites", 0, "so many more places that allocate")
	threads = flag.Int("threads", 4, "goroutines that contend")
)

func churn() {
	go func() {
		for {
			allocate()
			many(1000)
			runtime.GC()
		}
	}()
}

func main() {
	flag.Parse()
	memory = make([]runtime.MemProfileRecord, 200000)
	if *rate >= 0 {
		runtime.MemProfileRate = *rate
	}
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	work()
	write(flag.Arg(0))
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "again":
			debug.SetGCPercent(100)
			work()
			write(flag.Arg(0))
		case "churn":
			debug.SetGCPercent(100)
			churn()
		}
		fmt.Println("ready")
	}
}

func work() {
	allocate()
	many(*sites)
	contend(*threads)
	runtime.GC()
	runtime.GC()
	runtime.GC()
	debug.SetGCPercent(-1)
}
