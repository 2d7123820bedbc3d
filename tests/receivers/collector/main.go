// SPDX-License-Identifier: Apache-2.0

// The OpenTelemetry Collector with its own OTLP receiver, and an exporter that writes what came, as the Collector's own JSON, a line a request: KIND TAB JSON
// into the file that SONDE_SINK names. Test e2e/test_export_receivers.py starts it with a configuration and compares what it has with what sonde says.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

type sink struct {
	mu  sync.Mutex
	out *os.File
}

func (s *sink) put(kind string, json []byte, err error) error {
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = fmt.Fprintf(s.out, "%s\t%s\n", kind, json)
	return err
}

func (s *sink) Start(context.Context, component.Host) error { return nil }
func (s *sink) Shutdown(context.Context) error              { return nil }
func (s *sink) Capabilities() consumer.Capabilities         { return consumer.Capabilities{} }

func (s *sink) ConsumeMetrics(_ context.Context, d pmetric.Metrics) error {
	json, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(d)
	return s.put("metrics", json, err)
}

func (s *sink) ConsumeLogs(_ context.Context, d plog.Logs) error {
	json, err := (&plog.JSONMarshaler{}).MarshalLogs(d)
	return s.put("logs", json, err)
}

func (s *sink) ConsumeTraces(_ context.Context, d ptrace.Traces) error {
	json, err := (&ptrace.JSONMarshaler{}).MarshalTraces(d)
	return s.put("traces", json, err)
}

func (s *sink) ConsumeProfiles(_ context.Context, d pprofile.Profiles) error {
	json, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(d)
	return s.put("profiles", json, err)
}

func sinkFactory(s *sink) exporter.Factory {
	return xexporter.NewFactory(component.MustNewType("sink"), func() component.Config { return &struct{}{} },
		xexporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) { return s, nil }, component.StabilityLevelStable),
		xexporter.WithLogs(func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) { return s, nil }, component.StabilityLevelStable),
		xexporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) { return s, nil }, component.StabilityLevelStable),
		xexporter.WithProfiles(func(context.Context, exporter.Settings, component.Config) (xexporter.Profiles, error) { return s, nil }, component.StabilityLevelStable))
}

func main() {
	out, err := os.OpenFile(os.Getenv("SONDE_SINK"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	s := &sink{out: out}
	factories := func() (otelcol.Factories, error) {
		f := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}
		var err error
		if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
			return f, err
		}
		f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](sinkFactory(s))
		return f, err
	}
	cmd := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0.165.0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}, DefaultScheme: "file"},
		},
	})
	if err := cmd.Execute(); err != nil {
		log.Fatal(err)
	}
}
