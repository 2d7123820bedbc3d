// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/ioutil"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Frame is as runtime.CallersFrames tells it.
type Frame struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
}

// Record of one bucket; Values: memory allocs, frees, alloc_bytes, free_bytes; block and mutex count, ticks.
type Record struct {
	PCs    []uint64 `json:"pcs"`
	Frames []Frame  `json:"frames"`
	Values []int64  `json:"values"`
}

// Told is profile.json.
type Told struct {
	Version string   `json:"version"`
	Rate    int      `json:"rate"`
	Ticks   int64    `json:"ticks_per_second"` // as the text form of its block profile says
	Memory  []Record `json:"memory"`
	Block   []Record `json:"block"`
	Mutex   []Record `json:"mutex"`
}

func record(stack []uintptr, values ...int64) Record {
	r := Record{Values: values}
	for _, pc := range stack {
		r.PCs = append(r.PCs, uint64(pc))
	}
	for frames := runtime.CallersFrames(stack); len(stack) > 0; {
		f, more := frames.Next()
		r.Frames = append(r.Frames, Frame{f.Function, f.File, f.Line})
		if !more {
			break
		}
	}
	return r
}

var memory []runtime.MemProfileRecord
var block, mutex [10000]runtime.BlockProfileRecord

func contention(p []runtime.BlockProfileRecord) (out []Record) {
	for i := range p {
		out = append(out, record(p[i].Stack(), p[i].Count, p[i].Cycles))
	}
	return out
}

func write(dir string) {
	t := Told{Version: runtime.Version(), Rate: runtime.MemProfileRate}
	runtime.SetBlockProfileRate(0)
	runtime.SetMutexProfileFraction(0)
	if n, ok := runtime.MemProfile(memory, true); ok {
		for i := range memory[:n] {
			m := &memory[i]
			t.Memory = append(t.Memory, record(m.Stack(), m.AllocObjects, m.FreeObjects, m.AllocBytes, m.FreeBytes))
		}
	}
	if n, ok := runtime.BlockProfile(block[:]); ok {
		t.Block = contention(block[:n])
	}
	if n, ok := runtime.MutexProfile(mutex[:]); ok {
		t.Mutex = contention(mutex[:n])
	}
	var text bytes.Buffer
	pprof.Lookup("block").WriteTo(&text, 1)
	fmt.Sscanf(text.String(), "--- contention:\ncycles/second=%d", &t.Ticks)
	for _, name := range []string{"heap", "block", "mutex"} {
		f, err := os.Create(filepath.Join(dir, name+".pb.gz"))
		if err == nil {
			err = pprof.Lookup(name).WriteTo(f, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			panic(err)
		}
	}
	told, err := json.Marshal(t)
	if err == nil {
		err = ioutil.WriteFile(filepath.Join(dir, "profile.json"), told, 0o644)
	}
	if err != nil {
		panic(err)
	}
}
