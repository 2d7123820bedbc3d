// SPDX-License-Identifier: Apache-2.0

// A receiver of Pyroscope's push API, of what Pyroscope publishes as a module: the handler and the messages of its own API (push.v1, by Connect), profiles read and
// checked by Go's own library of pprof. The server itself is no module that can be had. What came is a line a profile, as JSON, in the file that SONDE_SINK names; the
// address is on standard output.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"google.golang.org/protobuf/proto"
)

type line struct {
	ID      string             `json:"id"`
	Labels  map[string]string  `json:"labels"`
	Types   []string           `json:"types"`
	From    int64              `json:"from_ns"`
	Length  int64              `json:"length_ns"`
	Stacks  map[string][]int64 `json:"stacks"` // root first, by ;
	Mapping int                `json:"mappings"`
}

type pusher struct {
	pushv1connect.UnimplementedPusherServiceHandler
	mu  sync.Mutex
	out *os.File
}

func stackOf(s *profile.Sample) string {
	var names []string
	for i := len(s.Location) - 1; i >= 0; i-- {
		for j := len(s.Location[i].Line) - 1; j >= 0; j-- {
			names = append(names, s.Location[i].Line[j].Function.Name)
		}
	}
	return strings.Join(names, ";")
}

// As pprof reads it, and as the server's own model does, without a field that it does not know.
func read(raw []byte) (*profile.Profile, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var model googlev1.Profile
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(plain, &model); err != nil {
		return nil, err
	}
	if n := proto.Size(&model); n != len(plain) {
		return nil, fmt.Errorf("of %d bytes the model has %d", len(plain), n)
	}
	p, err := profile.ParseUncompressed(plain)
	if err != nil {
		return nil, err
	}
	return p, p.CheckValid()
}

func (h *pusher) put(labels map[string]string, sample *pushv1.RawSample) error {
	p, err := read(sample.RawProfile)
	if err != nil {
		return err
	}
	l := line{ID: sample.ID, Labels: labels, From: p.TimeNanos, Length: p.DurationNanos, Stacks: map[string][]int64{}, Mapping: len(p.Mapping)}
	for _, t := range p.SampleType {
		l.Types = append(l.Types, t.Type+":"+t.Unit)
	}
	for _, s := range p.Sample {
		key := stackOf(s)
		have := l.Stacks[key]
		if have == nil {
			have = make([]int64, len(s.Value))
		}
		for i, v := range s.Value {
			have[i] += v
		}
		l.Stacks[key] = have
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = fmt.Fprintf(h.out, "%s\n", text)
	}
	return err
}

func (h *pusher) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(r.Msg.ProtoReflect().GetUnknown()) > 0 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("fields that nobody knows"))
	}
	for _, series := range r.Msg.Series {
		labels := map[string]string{}
		for _, pair := range series.Labels {
			if _, twice := labels[pair.Name]; twice || pair.Name == "" || pair.Value == "" {
				return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("label %q", pair.Name))
			}
			labels[pair.Name] = pair.Value
		}
		if labels["__name__"] == "" || labels["service_name"] == "" {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no __name__ or no service_name"))
		}
		for _, sample := range series.Samples {
			if err := h.put(labels, sample); err != nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
		}
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func main() {
	out, err := os.OpenFile(os.Getenv("SONDE_SINK"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(pushv1connect.NewPusherServiceHandler(&pusher{out: out}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + l.Addr().String())
	log.Fatal(http.Serve(l, mux))
}
