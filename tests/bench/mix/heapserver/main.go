// SPDX-License-Identifier: Apache-2.0

// heapserver: a Go HTTP server whose heap profile has so many buckets, and the client that keeps it busy.
//
//	heapserver -sites N           serves on a free port of loopback, and prints it when N stacks have allocated
//	heapserver -to PORT -seconds S -connections C     asks for that long, and prints how many answers came
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const levels = 17 // two calls at each: 131 072 stacks

var kept [][]byte

//go:noinline
func site(level, path int) {
	if level == 0 {
		kept = append(kept, make([]byte, 48))
		return
	}
	if path&1 == 0 {
		site(level-1, path>>1)
	} else {
		site(level-1, path>>1)
	}
}

func allocate(sites int) {
	kept = make([][]byte, 0, sites)
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	for i := 0; i < sites; i++ {
		site(levels, i)
	}
	runtime.MemProfileRate = rate
	runtime.GC()
	runtime.GC()
}

type answer struct {
	Name   string
	Values []int
}

func work(w http.ResponseWriter, _ *http.Request) {
	answers := make([]*answer, 50)
	for i := range answers {
		a := &answer{Name: fmt.Sprint("answer ", i), Values: make([]int, 20)}
		for j := range a.Values {
			a.Values[j] = (i*7919 + j*104729) % 1000
		}
		sort.Ints(a.Values)
		answers[i] = a
	}
	json.NewEncoder(w).Encode(answers)
}

func serve(sites int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	allocate(sites)
	http.HandleFunc("/", work)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}

func ask(port int, until time.Time, answers *int64) {
	client := &http.Client{Transport: &http.Transport{}}
	for time.Now().Before(until) {
		response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		atomic.AddInt64(answers, 1)
	}
}

func main() {
	sites := flag.Int("sites", 0, "stacks that have allocated")
	to := flag.Int("to", 0, "the port to ask")
	seconds := flag.Float64("seconds", 5, "how long")
	connections := flag.Int("connections", 4, "how many at once")
	flag.Parse()
	if *to == 0 {
		serve(*sites)
	}
	var answers int64
	var all sync.WaitGroup
	until := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	for i := 0; i < *connections; i++ {
		all.Add(1)
		go func() {
			ask(*to, until, &answers)
			all.Done()
		}()
	}
	all.Wait()
	fmt.Println(answers)
}
