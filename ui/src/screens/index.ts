/** All screens, loaded on first use. */

import type { Component } from "svelte";

import type { ScreenName } from "../lib/router/address";

export interface Screen {
  readonly title: string;
  readonly load: () => Promise<{ default: Component<{ id: string }> }>;
  /** Whether the time picker is shown. */
  readonly hasTime: boolean;
  /** Key after `g` that opens it; only screens with a key are in the navigation. */
  readonly key?: string;
}

export const screens: Record<ScreenName, Screen> = {
  start: { title: "Home", load: () => import("./start/Start.svelte"), hasTime: false, key: "h" },
  logs: { title: "Logs", load: () => import("./logs/Logs.svelte"), hasTime: true, key: "l" },
  traces: {
    title: "Traces",
    load: () => import("./traces/Traces.svelte"),
    hasTime: true,
    key: "t",
  },
  trace: { title: "Trace", load: () => import("./trace/Trace.svelte"), hasTime: false },
  services: {
    title: "Services",
    load: () => import("./services/Services.svelte"),
    hasTime: true,
    key: "s",
  },
  explore: {
    title: "Metrics",
    load: () => import("./explore/Explore.svelte"),
    hasTime: true,
    key: "m",
  },
  dashboards: {
    title: "Dashboards",
    load: () => import("./dashboards/DashboardList.svelte"),
    hasTime: false,
    key: "d",
  },
  dashboard: {
    title: "Dashboard",
    load: () => import("./dashboards/Dashboard.svelte"),
    hasTime: true,
  },
  alerts: {
    title: "Alerts",
    load: () => import("./alerts/Alerts.svelte"),
    hasTime: true,
    key: "a",
  },
  topics: {
    title: "Topics",
    load: () => import("./topics/Topics.svelte"),
    hasTime: false,
    key: "k",
  },
  topic: { title: "Topic", load: () => import("./topic/Topic.svelte"), hasTime: false },
  group: { title: "Consumer group", load: () => import("./group/Group.svelte"), hasTime: false },
  tables: {
    title: "Tables",
    load: () => import("./tables/Tables.svelte"),
    hasTime: false,
    key: "b",
  },
  table: { title: "Table", load: () => import("./table/Table.svelte"), hasTime: false },
  sql: { title: "SQL", load: () => import("./sql/Sql.svelte"), hasTime: false, key: "q" },
  pipeline: {
    title: "Pipeline",
    load: () => import("./pipeline/Pipeline.svelte"),
    hasTime: false,
    key: "p",
  },
  lake: { title: "Lake", load: () => import("./lake/Lake.svelte"), hasTime: false, key: "i" },
  load: { title: "Load", load: () => import("./load/Load.svelte"), hasTime: false, key: "f" },
  volume: {
    title: "Volume",
    load: () => import("./volume/Volume.svelte"),
    hasTime: true,
    key: "v",
  },
  view: { title: "Saved view", load: () => import("./view/View.svelte"), hasTime: false },
};
