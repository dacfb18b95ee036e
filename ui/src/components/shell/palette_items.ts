/**
 * What the palette finds besides commands: services, dashboards, saved files, metrics, topics,
 * consumer groups, tables, traces.
 */

import { get } from "../../lib/api/client";
import { findTraces } from "../../lib/api/find_trace";
import type {
  ConsumerGroups,
  DashboardsAnswer,
  MetricsAnswer,
  TablesAnswer,
  TopicsAnswer,
  VolumesAnswer,
} from "../../lib/api/types.gen";
import { duration } from "../../lib/format/format";
import { linkTo, router } from "../../lib/router/router.svelte";
import { linkToView } from "../../lib/saved/view_address";
import type { Command } from "../../lib/state/commands.svelte";
import {
  savedQueries,
  savedViews,
  type SavedFiles,
  titleOf,
} from "../../lib/saved/saved_files.svelte";

/** Services and metrics that reported since then. */
const SINCE = "24h";
const METRICS_MAX = 1000;

/** One list per kind; a list that cannot be loaded is left out. */
export function loadItems(signal: AbortSignal): Promise<Command[]>[] {
  return [
    services(signal),
    dashboards(signal),
    saved("Saved view", savedViews, linkToView, signal),
    saved("Saved query", savedQueries, (saved) => linkTo("sql", { saved }), signal),
    metrics(signal),
    topics(signal),
    groups(signal),
    tables(signal),
  ];
}

async function services(signal: AbortSignal): Promise<Command[]> {
  // Counts alone are much cheaper than the latencies of all services.
  const { volumes } = await get<VolumesAnswer>("api/v1/volumes", { since: SINCE }, signal);
  const names = [...new Set(volumes.map(({ service }) => service))].sort();
  return names.map((name) => item("Service", name, () => linkTo("services", { open: name })));
}

async function dashboards(signal: AbortSignal): Promise<Command[]> {
  const answer = await get<DashboardsAnswer>("api/v1/dashboards", {}, signal);
  return answer.dashboards.map(({ name, title, description }) =>
    item("Dashboard", title || name, () => linkTo("dashboard", {}, name), description),
  );
}

async function metrics(signal: AbortSignal): Promise<Command[]> {
  const params = { since: SINCE, limit: METRICS_MAX };
  const answer = await get<MetricsAnswer>("api/v1/metrics", params, signal);
  const names = [...new Set(answer.metrics.map(({ name }) => name))];
  return names.map((name) => item("Metric", name, () => linkTo("explore", { metric: name })));
}

async function topics(signal: AbortSignal): Promise<Command[]> {
  const answer = await get<TopicsAnswer>("api/v1/topics", {}, signal);
  return answer.topics
    .filter(({ kind }) => kind !== "internal")
    .map(({ name }) => item("Topic", name, () => linkTo("topic", {}, name)));
}

async function groups(signal: AbortSignal): Promise<Command[]> {
  const answer = await get<ConsumerGroups>("api/v1/groups", {}, signal);
  return answer.groups.map(({ group }) =>
    item("Consumer group", group, () => linkTo("group", { name: group })),
  );
}

async function tables(signal: AbortSignal): Promise<Command[]> {
  const answer = await get<TablesAnswer>("api/v1/tables", {}, signal);
  return answer.tables.map(({ table }) => item("Table", table, () => linkTo("table", {}, table)));
}

async function saved<T extends { readonly title: string; readonly description?: string }>(
  kind: string,
  files: SavedFiles<T>,
  hrefOf: (name: string) => string,
  signal: AbortSignal,
): Promise<Command[]> {
  await files.load(signal);
  return files.all
    .filter(({ content }) => content)
    .map((file) =>
      item(kind, titleOf(file), () => hrefOf(file.name), file.content?.description ?? ""),
    );
}

/** Traces whose id begins with the typed digits. */
export async function tracesById(prefix: string, signal: AbortSignal): Promise<Command[]> {
  return (await findTraces(prefix, signal)).map((trace) =>
    item(
      "Trace",
      `${trace.trace_id} · ${trace.root_service} ${trace.root_name} · ${duration(trace.duration_nano)}`,
      () => linkTo("trace", {}, trace.trace_id),
    ),
  );
}

function item(kind: string, name: string, href: () => string, words = ""): Command {
  return { name, kind, words: `${kind} ${words}`, run: () => router.navigate(href()) };
}
