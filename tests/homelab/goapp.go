// SPDX-License-Identifier: Apache-2.0

// goapp: a small Go service that asks itself over HTTP, allocates as services do, and keeps a little more each second.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

var kept [][]byte

//go:noinline
func keepMore() {
	kept = append(kept, make([]byte, 64<<10)) // LEAK
}

func answer(w http.ResponseWriter, r *http.Request) {
	m := map[string]string{}
	for i := 0; i < 200; i++ {
		m[fmt.Sprintf("key%d", i)] = strings.Repeat("v", i)
	}
	json.NewEncoder(w).Encode(m)
}

func main() {
	http.HandleFunc("/", answer)
	go http.ListenAndServe("127.0.0.1:8000", nil)
	for n := 0; ; n++ {
		if r, err := http.Get("http://127.0.0.1:8000/"); err == nil {
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		if n%50 == 0 {
			keepMore()
		}
		time.Sleep(5 * time.Millisecond)
	}
}
