// Sends telemetry with the OpenTelemetry SDK for Go, and prints what it was.
//
//	send grpc|http|json NAME COUNT
//
// The same telemetry, and the same line at the end, as ../send.py, which describes both. The SDK
// has JSON for traces only: with "json", logs and metrics go as protobuf.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	text      = "naïve żółw, 漢字, שלום, 🧊\n\x00\u2028"
	many      = 40
	batchSize = 20
	timeout   = 30 * time.Second
)

// retry is the default of each exporter, except for the first wait: 5 s is long for a test.
var retry = struct {
	Enabled                                      bool
	InitialInterval, MaxInterval, MaxElapsedTime time.Duration
}{true, 200 * time.Millisecond, timeout, timeout}

type severity struct {
	number log.Severity
	text   string
}

var severities = []severity{
	{log.SeverityInfo, "INFO"}, {log.SeverityWarn, "WARN"}, {log.SeverityError, "ERROR"},
}

func main() {
	count, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = send(os.Args[1], os.Args[2], count)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// send sends everything, waits until it is sent, and prints what it was.
func send(protocol, name string, count int) error {
	about := resource.NewSchemaless(
		attribute.String("service.name", name), attribute.String("text", text))
	traces, logs, metrics, err := providers(protocol, about)
	if err != nil {
		return err
	}
	tracer := traces.Tracer("chk", trace.WithInstrumentationVersion("1.0"))
	logger := logs.Logger("chk", log.WithInstrumentationVersion("1.0"))
	measures, err := measuresOf(metrics.Meter("chk", metric.WithInstrumentationVersion("1.0")))
	if err != nil {
		return err
	}
	sent := map[string]map[string][2]string{"logs": {}, "traces": {}, "metrics": {}}
	var before trace.Span
	for number := range count {
		id := func(signal string) string { return fmt.Sprintf("%s-%s-%d", name, signal, number) }
		ctx, span := startSpan(tracer, number, id("traces"), before)
		emit(ctx, logger, number, id("logs"))
		measures[number%len(measures)](ctx, int64(number), attributesOf(id("metrics")))
		span.End()
		place := span.SpanContext()
		for signal := range sent {
			sent[signal][id(signal)] = [2]string{place.TraceID().String(), place.SpanID().String()}
		}
		before = span
	}
	if err := shutDown(traces.Shutdown, logs.Shutdown, metrics.Shutdown); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(sent)
}

// shutDown ends all concurrently, as each may have to wait before a retry. This flushes the rest.
func shutDown(endings ...func(context.Context) error) error {
	failures := make([]error, len(endings))
	var ended sync.WaitGroup
	for i, end := range endings {
		ended.Go(func() { failures[i] = end(context.Background()) })
	}
	ended.Wait()
	return errors.Join(failures...)
}

func attributesOf(chkID string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String("chk.id", chkID),
		attribute.String("text", text),
		attribute.Int64("large", 1<<53-1),
		attribute.Int("negative", -1),
		attribute.Float64("ratio", 0.1),
		attribute.Bool("yes", true),
		attribute.StringSlice("words", []string{"a", text}),
	}
	for number := range many {
		attributes = append(attributes, attribute.Int(fmt.Sprintf("many.%d", number), number))
	}
	return attributes
}

func startSpan(
	tracer trace.Tracer, number int, chkID string, before trace.Span,
) (context.Context, trace.Span) {
	ctx := context.Background()
	kind := trace.SpanKindServer
	options := []trace.SpanStartOption{trace.WithAttributes(attributesOf(chkID)...)}
	if before != nil {
		link := trace.Link{
			SpanContext: before.SpanContext(),
			Attributes:  []attribute.KeyValue{attribute.String("text", text)},
		}
		options = append(options, trace.WithLinks(link))
	}
	if number%2 == 1 {
		kind = trace.SpanKindClient
		ctx = trace.ContextWithSpan(ctx, before)
	}
	ctx, span := tracer.Start(ctx, "span", append(options, trace.WithSpanKind(kind))...)
	span.AddEvent("event", trace.WithAttributes(attribute.String("text", text)))
	if number%3 == 2 {
		span.RecordError(errors.New(text), trace.WithStackTrace(true))
		span.SetStatus(codes.Error, text)
	}
	return ctx, span
}

func emit(ctx context.Context, logger log.Logger, number int, chkID string) {
	level := severities[number%3]
	var record log.Record
	record.SetTimestamp(time.Now())
	record.SetEventName("chk.event")
	record.SetSeverity(level.number)
	record.SetSeverityText(level.text)
	record.SetBody(attribute.StringValue(text))
	record.AddAttributes(attributesOf(chkID)...)
	if level.text == "ERROR" {
		record.SetBody(attribute.MapValue(
			attribute.String("text", text),
			attribute.Slice("numbers", attribute.IntValue(1), attribute.Float64Value(2.5)),
		))
		record.AddAttributes(
			attribute.String("exception.type", "error"),
			attribute.String("exception.message", text),
		)
	}
	logger.Emit(ctx, record)
}

type measure func(context.Context, int64, []attribute.KeyValue)

func measuresOf(meter metric.Meter) ([]measure, error) {
	unit, about := metric.WithUnit("{thing}"), metric.WithDescription(text)
	counter, err1 := meter.Int64Counter("counter", unit, about)
	upDown, err2 := meter.Int64UpDownCounter("up_down", unit, about)
	gauge, err3 := meter.Int64Gauge("gauge", unit, about)
	histogram, err4 := meter.Int64Histogram("histogram", unit, about)
	exponential, err5 := meter.Int64Histogram("exponential", unit, about)
	with := func(attributes []attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributes(attributes...)
	}
	return []measure{
		func(c context.Context, n int64, a []attribute.KeyValue) { counter.Add(c, n, with(a)) },
		func(c context.Context, n int64, a []attribute.KeyValue) { upDown.Add(c, n, with(a)) },
		func(c context.Context, n int64, a []attribute.KeyValue) { gauge.Record(c, n, with(a)) },
		func(c context.Context, n int64, a []attribute.KeyValue) { histogram.Record(c, n, with(a)) },
		func(c context.Context, n int64, a []attribute.KeyValue) { exponential.Record(c, n, with(a)) },
	}, errors.Join(err1, err2, err3, err4, err5)
}

func providers(protocol string, about *resource.Resource) (
	*sdktrace.TracerProvider, *sdklog.LoggerProvider, *sdkmetric.MeterProvider, error,
) {
	spansOut, logsOut, metricsOut, err := exporters(protocol)
	if err != nil {
		return nil, nil, nil, err
	}
	traces := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about),
		sdktrace.WithBatcher(spansOut, sdktrace.WithMaxExportBatchSize(batchSize)),
	)
	logs := sdklog.NewLoggerProvider(
		sdklog.WithResource(about),
		sdklog.WithProcessor(
			sdklog.NewBatchProcessor(logsOut, sdklog.WithExportMaxBatchSize(batchSize))),
	)
	exponential := sdkmetric.NewView(
		sdkmetric.Instrument{Name: "exponential"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}},
	)
	metrics := sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(about),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricsOut)),
		sdkmetric.WithView(exponential),
	)
	return traces, logs, metrics, nil
}

func exporters(protocol string) (sdktrace.SpanExporter, sdklog.Exporter, sdkmetric.Exporter, error) {
	ctx := context.Background()
	if protocol == "grpc" {
		spans, err1 := otlptracegrpc.New(ctx, otlptracegrpc.WithTimeout(timeout),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig(retry)))
		logs, err2 := otlploggrpc.New(ctx, otlploggrpc.WithTimeout(timeout),
			otlploggrpc.WithRetry(otlploggrpc.RetryConfig(retry)))
		metrics, err3 := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithTimeout(timeout),
			otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig(retry)))
		return spans, logs, metrics, errors.Join(err1, err2, err3)
	}
	encoding := otlptracehttp.EncodingProtobuf
	if protocol == "json" {
		encoding = otlptracehttp.EncodingJSON
	}
	spans, err1 := otlptracehttp.New(ctx, otlptracehttp.WithTimeout(timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig(retry)),
		otlptracehttp.WithEncoding(encoding))
	logs, err2 := otlploghttp.New(ctx, otlploghttp.WithTimeout(timeout),
		otlploghttp.WithRetry(otlploghttp.RetryConfig(retry)))
	metrics, err3 := otlpmetrichttp.New(ctx, otlpmetrichttp.WithTimeout(timeout),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig(retry)))
	return spans, logs, metrics, errors.Join(err1, err2, err3)
}
