// Sends telemetry with the OpenTelemetry SDK for JavaScript, and prints what it was.
//
//     node send.js json|proto NAME COUNT
//
// The same telemetry, and the same line at the end, as ../send.py, which describes both.

"use strict";

const { ROOT_CONTEXT, DiagConsoleLogger, DiagLogLevel, SpanKind, SpanStatusCode, diag, trace } =
  require("@opentelemetry/api");
const { SeverityNumber } = require("@opentelemetry/api-logs");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { BatchLogRecordProcessor, LoggerProvider } = require("@opentelemetry/sdk-logs");
const { AggregationType, MeterProvider, PeriodicExportingMetricReader } =
  require("@opentelemetry/sdk-metrics");
const { BasicTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-base");

const TEXT = "naïve żółw, 漢字, שלום, 🧊\n\u0000\u2028";
const MANY = 40;
const BATCH_SIZE = 20;
const TIMEOUT_MS = 30_000;
const SEVERITIES = ["INFO", "WARN", "ERROR"];

async function main(encoding, name, count) {
  diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.WARN);
  const resource = resourceFromAttributes({ "service.name": name, text: TEXT });
  const { traces, logs, metrics } = providers(encoding, resource);
  const tracer = traces.getTracer("chk", "1.0");
  const logger = logs.getLogger("chk", "1.0");
  const measures = measuresOf(metrics.getMeter("chk", "1.0"));
  const sent = { logs: {}, traces: {}, metrics: {} };
  let before = null;
  for (let number = 0; number < count; number++) {
    const idOf = (signal) => `${name}-${signal}-${number}`;
    const span = startSpan(tracer, number, idOf("traces"), before);
    const context = trace.setSpan(ROOT_CONTEXT, span);
    emit(logger, number, idOf("logs"), context);
    measures[number % measures.length](number, attributesOf(idOf("metrics")), context);
    span.end();
    const { traceId, spanId } = span.spanContext();
    for (const signal of Object.keys(sent)) sent[signal][idOf(signal)] = [traceId, spanId];
    before = span;
  }
  // Concurrently, as each may have to wait before a retry. This flushes the rest.
  await Promise.all([traces.shutdown(), logs.shutdown(), metrics.shutdown()]);
  console.log(JSON.stringify(sent));
}

function attributesOf(chkId) {
  const attributes = {
    "chk.id": chkId,
    text: TEXT,
    large: Number.MAX_SAFE_INTEGER,
    negative: -1,
    ratio: 0.1,
    yes: true,
    words: ["a", TEXT],
  };
  for (let number = 0; number < MANY; number++) attributes[`many.${number}`] = number;
  return attributes;
}

function startSpan(tracer, number, chkId, before) {
  const span = tracer.startSpan(
    "span",
    {
      kind: number % 2 ? SpanKind.CLIENT : SpanKind.SERVER,
      attributes: attributesOf(chkId),
      links: before ? [{ context: before.spanContext(), attributes: { text: TEXT } }] : [],
    },
    before && number % 2 ? trace.setSpan(ROOT_CONTEXT, before) : ROOT_CONTEXT,
  );
  span.addEvent("event", { text: TEXT });
  if (number % 3 === 2) {
    span.recordException(new TypeError(TEXT));
    span.setStatus({ code: SpanStatusCode.ERROR, message: TEXT });
  }
  return span;
}

function emit(logger, number, chkId, context) {
  const severityText = SEVERITIES[number % 3];
  const attributes = attributesOf(chkId);
  let body = TEXT;
  if (severityText === "ERROR") {
    attributes["exception.type"] = "TypeError";
    attributes["exception.message"] = TEXT;
    body = { text: TEXT, numbers: [1, 2.5] };
  }
  const severityNumber = SeverityNumber[severityText];
  logger.emit({ eventName: "chk.event", severityNumber, severityText, body, attributes, context });
}

function measuresOf(meter) {
  const options = { unit: "{thing}", description: TEXT };
  const counter = meter.createCounter("counter", options);
  const upDown = meter.createUpDownCounter("up_down", options);
  const gauge = meter.createGauge("gauge", options);
  const histogram = meter.createHistogram("histogram", options);
  const exponential = meter.createHistogram("exponential", options);
  return [
    (...measured) => counter.add(...measured),
    (...measured) => upDown.add(...measured),
    (...measured) => gauge.record(...measured),
    (...measured) => histogram.record(...measured),
    (...measured) => exponential.record(...measured),
  ];
}

function providers(encoding, resource) {
  const suffix = encoding === "json" ? "otlp-http" : "otlp-proto";
  const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-${suffix}`);
  const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-${suffix}`);
  const { OTLPMetricExporter } = require(`@opentelemetry/exporter-metrics-${suffix}`);
  const settings = { timeoutMillis: TIMEOUT_MS };
  const batches = { maxExportBatchSize: BATCH_SIZE };
  const spansOut = new OTLPTraceExporter(settings);
  const logsOut = new OTLPLogExporter(settings);
  const metricsOut = new OTLPMetricExporter(settings);
  return {
    traces: new BasicTracerProvider({
      resource,
      spanProcessors: [new BatchSpanProcessor(spansOut, batches)],
    }),
    logs: new LoggerProvider({
      resource,
      processors: [new BatchLogRecordProcessor({ exporter: logsOut, ...batches })],
    }),
    metrics: new MeterProvider({
      resource,
      readers: [new PeriodicExportingMetricReader({ exporter: metricsOut })],
      views: [
        {
          instrumentName: "exponential",
          aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM },
        },
      ],
    }),
  };
}

main(process.argv[2], process.argv[3], Number(process.argv[4]));
