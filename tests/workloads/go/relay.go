// SPDX-License-Identifier: Apache-2.0

// A relay of the kinds of relays.py: relay UPSTREAM_PORT [own]. Prints its port. "now" asks on a
// connection that the goroutine opens itself, the others by net/http's client.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

var up = "127.0.0.1:" + os.Args[1]

func askNow(word string) error {
	c, err := net.Dial("tcp", up)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: up\r\nX-Request-Id: %s\r\nConnection: close\r\n\r\n", word, word)
	_, err = io.Copy(io.Discard, bufio.NewReader(c))
	return err
}

func askPool(word string) error {
	q, err := http.NewRequest("GET", "http://"+up+"/"+word, nil)
	if err != nil {
		return err
	}
	q.Header.Set("X-Request-Id", word)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	_, err = io.Copy(io.Discard, a.Body)
	return err
}

func serve(w http.ResponseWriter, r *http.Request) {
	part := strings.Split(r.URL.Path, "/")
	var err error
	switch part[1] {
	case "now":
		err = askNow(part[2])
	case "wait":
		time.Sleep(time.Duration(1+part[2][0]%7) * time.Millisecond)
		err = askNow(part[2])
	case "twice":
		if err = askNow(part[2]); err == nil {
			err = askNow(part[2])
		}
	default:
		err = askPool(part[2])
	}
	if err != nil {
		http.Error(w, err.Error(), 502)
		return
	}
	io.WriteString(w, "ok")
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	go http.Serve(l, http.HandlerFunc(serve))
	if len(os.Args) > 2 {
		go func() {
			for range time.Tick(23 * time.Millisecond) {
				askNow(strings.Repeat("b", 32))
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
}
