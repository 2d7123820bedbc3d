// SPDX-License-Identifier: Apache-2.0

// The sink accepts what an agent sends by OTLP, over gRPC and over HTTP, answers that it was taken, and throws it away. It counts requests and bytes by path, and
// prints them as JSON at its end: an agent that sent nothing was not measured. It knows no protocol buffer: of gRPC it knows the frame around a message.
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

type sum struct{ Requests, Bytes int64 }

type sink struct {
	mu   sync.Mutex
	sums map[string]*sum
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	if s.sums[r.URL.Path] == nil {
		s.sums[r.URL.Path] = &sum{}
	}
	s.sums[r.URL.Path].Requests++
	s.sums[r.URL.Path].Bytes += n
	s.mu.Unlock()
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.Write([]byte{0, 0, 0, 0, 0}) // an empty message: all was taken
	w.Header().Set("Grpc-Status", "0")
}

func main() {
	s := &sink{sums: map[string]*sum{}}
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: s, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	go server.ListenAndServe()
	<-end
	s.mu.Lock()
	json.NewEncoder(os.Stdout).Encode(s.sums)
}
