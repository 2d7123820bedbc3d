// SPDX-License-Identifier: Apache-2.0

// hotlines SECONDS: as hotlines.c does it, in Go: each loop stands on one line, and all turns cost the same.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

const a, c = 6364136223846793005, 1442695040888963407

var sink uint64

func here() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

//go:noinline
func hot(turns, x uint64) uint64 {
	for n := turns / 10 * 7; n > 0; n-- { x = x*a + c } // first
	for n := turns / 10 * 3; n > 0; n-- { x = x*a + c } // second
	return x
}

func nano(turns, x uint64) uint64 {
	for n := turns; n > 0; n-- { x = x*a + c }
	return x
}

func step(turns, x uint64) uint64 {
	x = nano(turns, x)
	return x + 1
}

//go:noinline
func outer(turns, x uint64) uint64 {
	x = step(turns/2, x)
	for n := turns / 2; n > 0; n-- { x = x*a + c }
	return x
}

func main() {
	seconds := 5.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	seed, turns := uint64(88172645463325252), [2]uint64{}
	for i := 0; time.Now().Before(end); i = 1 - i {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		n := 1000000 + seed%2000000
		if i == 0 {
			sink = hot(n, sink)
		} else {
			sink = outer(n, sink)
		}
		turns[i] += n
	}
	at := func(up int) int { return here() - up } // lines above this one
	fmt.Printf("{\"pid\": %d, \"turns\": {\"hot\": %d, \"outer\": %d}, \"hot\": {\"%d\": 0.7, \"%d\": 0.3}, \"nano\": {\"%d\": 1.0}, "+
		"\"step\": {\"%d\": 1.0}, \"outer\": {\"%d\": 0.5, \"%d\": 0.5}}\n", os.Getpid(), turns[0], turns[1],
		at(41), at(40), at(35), at(30), at(24), at(23))
}
