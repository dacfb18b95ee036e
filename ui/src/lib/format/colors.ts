/** Colours of severities and services. Only errors are red. */

import { colorNumber, colorOf, dashesOf } from "./service_colors";

const SERVICES = {
  light: [
    "#0b7285",
    "#5f3dc4",
    "#2b8a3e",
    "#a15c00",
    "#1864ab",
    "#9c36b5",
    "#5c7a00",
    "#087f5b",
    "#364fc7",
    "#7a5a3a",
    "#b3478c",
    "#4a6a7a",
  ],
  dark: [
    "#3bc9db",
    "#9775fa",
    "#69db7c",
    "#ffc078",
    "#4dabf7",
    "#da77f2",
    "#c0eb75",
    "#38d9a9",
    "#91a7ff",
    "#d0b090",
    "#f2a0d0",
    "#9fb8c6",
  ],
};

/** Ascending, as bars are stacked. */
export const SEVERITIES = [
  "UNSPECIFIED",
  "TRACE",
  "DEBUG",
  "INFO",
  "WARN",
  "ERROR",
  "FATAL",
] as const;
export type Severity = (typeof SEVERITIES)[number];

const SEVERITY: Record<"light" | "dark", Record<string, string>> = {
  light: {
    UNSPECIFIED: "#adb5bd",
    TRACE: "#ced4da",
    DEBUG: "#99aab5",
    INFO: "#4a9cc4",
    WARN: "#e8a317",
    ERROR: "#d9304f",
    FATAL: "#8f1230",
  },
  dark: {
    UNSPECIFIED: "#5c6770",
    TRACE: "#46525c",
    DEBUG: "#62747f",
    INFO: "#3f87ab",
    WARN: "#e0a83a",
    ERROR: "#f0506a",
    FATAL: "#ff8fa3",
  },
};

/** The colour of a service: the same on every screen and in every browser. */
export function serviceColor(service: string, isDark: boolean): string {
  const palette = SERVICES[isDark ? "dark" : "light"];
  return colorOf(palette, colorNumber(service, palette.length));
}

/** Dash patterns of chart lines, so that services of the same colour differ. */
export function serviceDashes(services: readonly string[]): number[][] {
  return dashesOf(services, SERVICES.light.length);
}

/** Colours of chart lines without a meaning. */
export function lineColor(index: number, isDark: boolean): string {
  const colors = SERVICES[isDark ? "dark" : "light"];
  return colors[index % colors.length]!;
}

export function severityColor(severity: string, isDark: boolean): string {
  const colors = SEVERITY[isDark ? "dark" : "light"];
  return colors[severity] ?? colors["UNSPECIFIED"]!;
}
