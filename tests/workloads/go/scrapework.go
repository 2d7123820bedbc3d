// SPDX-License-Identifier: Apache-2.0

// scrapework: a program that offers /debug/pprof at a port of loopback, allocates, holds, blocks and waits for a lock, and keeps of each
// profile that it hands out a copy: DIR/NAME.N, N from 0 on. It prints {"port": N} and works until its standard input ends.
// Options: -plain (its port speaks no HTTP), -hidden (nothing is at /debug/pprof), -locked (it wants a password), -moved (it sends elsewhere), -liar FILE (each profile is this file's bytes),
// -slow (an answer never ends), -huge (one without end), -tls (it wants TLS), -listen ADDRESS or unix:PATH, -rest (it does
// nothing), -shared (others may listen there too).
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	held  [][]byte
	lock  sync.Mutex
	sink  uint64
	asked int64
)

type copying struct {
	http.ResponseWriter
	copy bytes.Buffer
}

func (c *copying) Write(b []byte) (int, error) {
	c.copy.Write(b)
	return c.ResponseWriter.Write(b)
}

//go:noinline
func hold(n int) {
	for i := 0; i < n; i++ {
		held = append(held, make([]byte, 1<<16))
	}
}

//go:noinline
func spin(until time.Time) {
	x := uint64(1)
	for time.Now().Before(until) {
		for i := 0; i < 100000; i++ {
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
	atomic.AddUint64(&sink, x)
}

//go:noinline
func fight() {
	lock.Lock()
	time.Sleep(2 * time.Millisecond)
	lock.Unlock()
}

//go:noinline
func park(c chan int) {
	<-c
}

func work(c chan int) {
	for {
		spin(time.Now().Add(5 * time.Millisecond))
		var w sync.WaitGroup
		for i := 0; i < 3; i++ {
			w.Add(1)
			go func() { fight(); w.Done() }()
		}
		w.Wait()
		lock.Lock()
		hold(1)
		if len(held) > 1000 {
			held = held[:500]
		}
		lock.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func serve(dir string, lie []byte, hidden bool, endless int) http.Handler {
	var mu sync.Mutex
	count := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		atomic.AddInt64(&asked, 1)
		mu.Lock()
		n := count[name]
		count[name]++
		mu.Unlock()
		if hidden {
			os.WriteFile(fmt.Sprintf("%s/%s.%d", dir, name, n), []byte(r.URL.String()), 0644)
			http.NotFound(w, r)
			return
		}
		if name != "pprof" && lie != nil {
			w.Write(lie)
			return
		}
		if name != "pprof" && endless > 0 {
			for i := 0; endless == 2 || i == 0; i++ {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			return
		}
		c := &copying{ResponseWriter: w}
		http.DefaultServeMux.ServeHTTP(c, r)
		path := fmt.Sprintf("%s/%s.%d", dir, name, n)
		os.WriteFile(path+".part", c.copy.Bytes(), 0644)
		os.Rename(path+".part", path)
	})
}

func main() {
	plain := flag.Bool("plain", false, "")
	hidden := flag.Bool("hidden", false, "")
	locked := flag.Bool("locked", false, "")
	moved := flag.Bool("moved", false, "")
	liar := flag.String("liar", "", "")
	slow := flag.Bool("slow", false, "")
	huge := flag.Bool("huge", false, "")
	tls := flag.Bool("tls", false, "")
	rest := flag.Bool("rest", false, "")
	shared := flag.Bool("shared", false, "")
	listen := flag.String("listen", "127.0.0.1:0", "")
	flag.Parse()
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	var lie []byte
	if *liar != "" {
		lie, _ = os.ReadFile(*liar)
	}
	endless := 0
	if *slow {
		endless = 1
	}
	if *huge {
		endless = 2
	}
	how := net.ListenConfig{}
	if *shared {
		how.Control = func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, 15, 1) }) // SO_REUSEPORT
		}
	}
	network, at := "tcp", *listen
	if strings.HasPrefix(at, "unix:") {
		network, at = "unix", at[5:]
	}
	l, err := how.Listen(context.Background(), network, at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c := make(chan int)
	for i := 0; i < 7; i++ {
		go park(c)
	}
	switch {
	case *plain:
		go func() {
			for {
				a, err := l.Accept()
				if err != nil {
					return
				}
				a.Write([]byte("220 what is it?\r\n"))
				a.Close()
			}
		}()
	case *tls:
		go func() {
			for {
				a, err := l.Accept()
				if err != nil {
					return
				}
				a.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"))
				a.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, a)
				a.Close()
			}
		}()
	case *locked:
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		}))
	case *moved:
		go http.Serve(l, http.RedirectHandler("https://127.0.0.1:1/debug/pprof/", http.StatusMovedPermanently))
	default:
		go http.Serve(l, serve(flag.Arg(0), lie, *hidden, endless))
	}
	if !*rest {
		go work(c)
	}
	port := 0
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		port = tcp.Port
	}
	fmt.Printf("{\"port\": %d}\n", port)
	io.Copy(io.Discard, os.Stdin)
}
