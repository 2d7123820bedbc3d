// SPDX-License-Identifier: Apache-2.0
// leak: keeps KIB more each 20 ms, SECONDS long; says how many bytes. leak KIB SECONDS [none]: drops it each 16 MiB
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

var kept [][]byte

//go:noinline
func leaky(bytes int) {
	b := make([]byte, bytes)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	kept = append(kept, b)
}

func main() {
	kib, _ := strconv.Atoi(os.Args[1])
	seconds, _ := strconv.Atoi(os.Args[2])
	for i := 0; i < seconds*50; i++ {
		leaky(kib << 10)
		if len(os.Args) > 3 && len(kept)*kib > 16<<10 {
			kept = nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Println(len(kept) * kib << 10)
	os.Stdin.Read(make([]byte, 1))
}
