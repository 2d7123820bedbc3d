// SPDX-License-Identifier: Apache-2.0

// Functions of Go that a probe sees begin and end: a method, texts, results, stacks that grow (and move) within a call, and many
// goroutines. With an argument: collections, channels and waits. A line on standard input starts it; it says what it did as a line of JSON, and ends with the input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

type server struct{ sum int }

//go:noinline
func (s *server) handle(n int, name string) int {
	s.sum += n
	if name == "" {
		return -n
	}
	return n * len(name)
}

//go:noinline
func deep(n int) int {
	var room [512]byte
	room[n%len(room)] = byte(n)
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + 1 + int(room[n%len(room)]-byte(n))
}

// Collections, messages from goroutine to goroutine, and waits for a group.
func collects(in *bufio.Reader) {
	debug.SetGCPercent(-1)
	fmt.Println("ready")
	in.ReadString('\n')
	for i := 0; i < 6; i++ {
		runtime.GC()
	}
	there, back := make(chan int), make(chan int)
	go func() {
		for n := range there {
			back <- n + 1
		}
	}()
	for i := 0; i < 100; i++ {
		there <- i
		if <-back != i+1 {
			os.Exit(1)
		}
	}
	for i := 0; i < 10; i++ {
		var group sync.WaitGroup
		group.Add(1)
		go func() {
			time.Sleep(time.Millisecond)
			group.Done()
		}()
		group.Wait()
	}
	fmt.Println(`{"collections":6,"messages":200,"waits":10}`)
	in.ReadString('\n')
}

func main() {
	in := bufio.NewReader(os.Stdin)
	if len(os.Args) > 1 {
		collects(in)
		return
	}
	var s server
	fmt.Println("ready")
	in.ReadString('\n')
	for i := 0; i < 50; i++ {
		s.handle(i, "request"[:i%8%7])
	}
	var all sync.WaitGroup
	for g := 0; g < 20; g++ {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.Gosched()
			deep(200)
		}()
	}
	all.Wait()
	fmt.Printf("{\"sum\":%d}\n", s.sum)
	in.ReadString('\n')
}
