/** Setup steps for applications. */

import type { IngestStatus } from "../../lib/api/types.gen";
import type { Language, Transport } from "./params";

export const NAMES: Record<Language, string> = {
  python: "Python",
  node: "Node.js",
  java: "Java",
  go: "Go",
  collector: "Collector",
  shell: "Shell",
};

export interface Step {
  readonly says: string;
  readonly text: string;
}

export interface Target {
  /** Endpoints of this node, as seen from the browser. */
  readonly host: string;
  readonly ports: Readonly<Record<Transport, number>>;
  readonly isTls: boolean;
  readonly needsToken: boolean;
}

const TOKEN = "YOUR_TOKEN";

export function targetOf(host: string, ingest: IngestStatus): Target {
  return {
    host,
    ports: { grpc: ingest.grpc_port, http: ingest.http_port },
    isTls: ingest.is_tls,
    needsToken: ingest.needs_token,
  };
}

export function endpointOf({ host, ports, isTls }: Target, by: Transport): string {
  return `${isTls ? "https" : "http"}://${host}:${ports[by]}`;
}

export function setupSteps(language: Language, target: Target, by: Transport): Step[] {
  switch (language) {
    case "python":
      return [
        {
          says: "Install",
          text: lines(
            "pip install opentelemetry-distro opentelemetry-exporter-otlp",
            "opentelemetry-bootstrap -a install",
          ),
        },
        variables(target, by, "export OTEL_PYTHON_LOGGING_AUTO_INSTRUMENTATION_ENABLED=true"),
        {
          says: "Run the application (no code changes)",
          text: "opentelemetry-instrument python app.py",
        },
      ];
    case "node":
      return [
        {
          says: "Install",
          text: "npm install @opentelemetry/api @opentelemetry/auto-instrumentations-node",
        },
        variables(target, by),
        {
          says: "Run the application (no code changes)",
          text: "node --require @opentelemetry/auto-instrumentations-node/register app.js",
        },
      ];
    case "java":
      return [
        {
          says: "Download the agent",
          text: "curl -LO https://github.com/open-telemetry/opentelemetry-java-instrumentation/releases/latest/download/opentelemetry-javaagent.jar",
        },
        variables(target, by),
        {
          says: "Run the application (no code changes)",
          text: "java -javaagent:opentelemetry-javaagent.jar -jar app.jar",
        },
      ];
    case "go":
      return [
        {
          says: "Install the packages",
          text: "go get go.opentelemetry.io/otel/sdk go.opentelemetry.io/contrib/exporters/autoexport",
        },
        { says: "At the start of main", text: GO },
        variables(target, by),
      ];
    case "collector":
      return [{ says: "In the Collector's configuration", text: collector(target, by) }];
    case "shell":
      return [{ says: "Send one log record over HTTP", text: shell(target) }];
  }
}

function variables(target: Target, by: Transport, ...more: string[]): Step {
  return {
    says: "Configure the exporter",
    text: lines(
      "export OTEL_SERVICE_NAME=my-service",
      `export OTEL_EXPORTER_OTLP_ENDPOINT=${endpointOf(target, by)}`,
      `export OTEL_EXPORTER_OTLP_PROTOCOL=${by === "grpc" ? "grpc" : "http/protobuf"}`,
      "export OTEL_TRACES_EXPORTER=otlp OTEL_METRICS_EXPORTER=otlp OTEL_LOGS_EXPORTER=otlp",
      target.needsToken
        ? `export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20${TOKEN}"`
        : "",
      ...more,
    ),
  };
}

const GO = `exporter, err := autoexport.NewSpanExporter(ctx) // reads OTEL_*
if err != nil {
	log.Fatal(err)
}
provider := trace.NewTracerProvider(trace.WithBatcher(exporter))
defer provider.Shutdown(ctx)
otel.SetTracerProvider(provider)`;

function collector(target: Target, by: Transport): string {
  const name = by === "grpc" ? "otlp/frazil" : "otlphttp/frazil";
  const where = by === "grpc" ? `${target.host}:${target.ports.grpc}` : endpointOf(target, by);
  const pipeline = (signal: string) =>
    `    ${signal}: {receivers: [otlp], processors: [batch], exporters: [${name}]}`;
  return lines(
    "receivers:",
    "  otlp: {protocols: {grpc: {}, http: {}}}",
    "processors:",
    "  batch: {}",
    "exporters:",
    `  ${name}:`,
    `    endpoint: ${where}`,
    by === "grpc" && !target.isTls ? "    tls: {insecure: true}" : "",
    target.needsToken ? `    headers: {authorization: "Bearer ${TOKEN}"}` : "",
    "service:",
    "  pipelines:",
    pipeline("traces"),
    pipeline("metrics"),
    pipeline("logs"),
  );
}

function shell(target: Target): string {
  const token = target.needsToken ? ` -H 'Authorization: Bearer ${TOKEN}'` : "";
  const service = '{"attributes":[{"key":"service.name","value":{"stringValue":"my-service"}}]}';
  const record =
    '{"timeUnixNano":"\'$(date +%s)\'000000000","severityNumber":9,"body":{"stringValue":"hello"}}';
  return lines(
    `curl ${endpointOf(target, "http")}/v1/logs -H 'Content-Type: application/json'${token} \\`,
    `  -d '{"resourceLogs":[{"resource":${service},"scopeLogs":[{"logRecords":[${record}]}]}]}'`,
  );
}

function lines(...all: string[]): string {
  return all.filter((line) => line !== "").join("\n");
}
