// SPDX-License-Identifier: Apache-2.0

// offwork: a Go program whose linker has switched memory profiling off, for nothing in it asks for a profile. It does what
// a line of standard input says, and answers each with a line:
//
//	rate      its runtime.MemProfileRate        set BYTES  sets it
//	hold MB   holds so many more, in objects of 4096 bytes, after a collection of garbage
//	exec      becomes the same program anew
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

var held [][]byte

//go:noinline
func hold(mb int) {
	for i := 0; i < mb<<20/4096; i++ {
		held = append(held, make([]byte, 4096)) // HOLD
	}
}

func number(words []string) int {
	n, err := strconv.Atoi(words[1])
	if err != nil {
		panic(err)
	}
	return n
}

func do(words []string) {
	switch words[0] {
	case "set":
		runtime.MemProfileRate = number(words)
	case "hold":
		hold(number(words))
		runtime.GC()
		runtime.GC()
	case "exec":
		panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	}
}

func main() {
	fmt.Println("rate", runtime.MemProfileRate)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		do(strings.Fields(in.Text()))
		fmt.Println("rate", runtime.MemProfileRate)
	}
}
