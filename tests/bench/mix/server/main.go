// SPDX-License-Identifier: Apache-2.0

// server: the Go part of the mix: an HTTP server on loopback and four clients of it in one process, JSON both ways.
// Ends after the given number of seconds.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

type order struct {
	ID    int      `json:"id"`
	Items []string `json:"items"`
}

func handle(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	o.ID++
	json.NewEncoder(w).Encode(o)
}

func client(url string) {
	body, _ := json.Marshal(order{ID: 1, Items: []string{"one", "two", "three"}})
	for {
		resp, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, http.HandlerFunc(handle))
	for i := 0; i < 4; i++ {
		go client("http://" + l.Addr().String() + "/order")
	}
	time.Sleep(time.Duration(seconds) * time.Second)
}
