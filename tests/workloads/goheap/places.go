// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sort"
	"strings"
	"sync"
	"time"
)

var kept [][]byte
var names []string

type tree struct {
	left, right *tree
	data        [96]byte
}

func inlined(n int) []byte { return make([]byte, n) }

func twice(n int) []byte { return append(inlined(n), inlined(n)...) }

//go:noinline
func plain(n int) []byte { return make([]byte, n) }

//go:noinline
func (t *tree) grow(depth int) *tree {
	if depth == 0 {
		return t
	}
	t.left = (&tree{}).grow(depth - 1)
	t.right = new(tree)
	return t
}

type shape interface{ area() []int }
type square struct{ side int }

func (s square) area() []int { return make([]int, s.side) }

// deeper than the 32 frames that old records hold
//
//go:noinline
func deep(n int) []byte {
	if n == 0 {
		return make([]byte, 5000)
	}
	return append([]byte{}, deep(n-1)...)
}

var root *tree
var areas [][]int

func allocate() {
	for i := 0; i < 300; i++ {
		kept = append(kept, plain(512+i), twice(2000))
		plain(70000)
		func() { kept = append(kept, make([]byte, 3000)) }()
		var s shape = &square{i}
		areas = append(areas, s.area())
		names = append(names, strings.Repeat("x", i+100))
	}
	kept = append(kept, make([]byte, 5<<20), deep(50))
	root = new(tree).grow(40)
	sort.Slice(kept, func(i, j int) bool { return len(kept[i]) < len(kept[j]) })
	generic()
}

// many makes one bucket for each n, by as many stacks: the bits of n are calls
func many(n int) {
	for i := 0; i < n; i++ {
		even(i, 17)
	}
}

var last []byte

//go:noinline
func even(n, bits int) {
	if bits == 0 {
		last = make([]byte, 8192)
		return
	}
	if n&1 == 0 {
		even(n>>1, bits-1)
	} else {
		odd(n>>1, bits-1)
	}
}

//go:noinline
func odd(n, bits int) {
	even(n, bits)
}

type guarded struct {
	sync.Mutex
	n int
}

func (g *guarded) add() {
	g.Lock()
	defer g.Unlock()
	g.n++
	time.Sleep(time.Millisecond)
}

// inlined around the runtime's calls: the first frames are skipped within one physical frame
func lock(g *sync.RWMutex)   { g.Lock() }
func unlock(g *sync.RWMutex) { g.Unlock() }

func contend(n int) {
	var wg sync.WaitGroup
	var g guarded
	var rw sync.RWMutex
	c := make(chan int)
	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			for j := 0; j < 5; j++ {
				g.add()
				lock(&rw)
				time.Sleep(time.Millisecond)
				unlock(&rw)
				c <- j
			}
			wg.Done()
		}()
	}
	for i := 0; i < 5*n; i++ {
		select {
		case <-c:
		case <-time.After(time.Minute):
		}
	}
	wg.Wait()
}
