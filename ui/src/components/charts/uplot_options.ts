/** uPlot options of a chart. */

import type uPlot from "uplot";

import { byteSteps, type Formatter } from "../../lib/format/units";
import type { TimeRange } from "../../lib/time/range";

export interface ChartLine {
  readonly name: string;
  readonly color: string;
  /** Dash pattern; solid without one. */
  readonly dash?: readonly number[] | undefined;
  /** Null is a gap; undefined connects the neighbouring values. */
  readonly values: readonly (number | null | undefined)[];
}

/** A single value beside the lines, such as an exemplar. */
export interface ChartDot {
  readonly timeMs: number;
  readonly value: number;
  readonly label: string;
  readonly href: string;
}

/** A vertical line at a time, such as a deployment. */
export interface ChartMarker {
  readonly timeMs: number;
  readonly label: string;
}

export interface ChartOptions {
  readonly lines: readonly ChartLine[];
  readonly kind: "lines" | "bars";
  readonly isStacked: boolean;
  readonly stepMs: number;
  readonly height: number;
  readonly isDark: boolean;
  readonly isUtc: boolean;
  readonly value: Formatter;
  readonly dots: () => readonly ChartDot[];
  readonly markers: () => readonly ChartMarker[];
  readonly range: () => TimeRange;
  readonly onnarrow: (range: TimeRange) => void;
  readonly onpoint: (index: number | null, left: number) => void;
  readonly onchoose: (dot: ChartDot) => void;
}

/** Stack each line on those before it. A missing value counts as zero. */
export function stacked(lines: readonly (readonly (number | null | undefined)[])[]): number[][] {
  const heights: number[][] = [];
  let below: number[] = [];
  for (const values of lines) {
    below = values.map((value, i) => (below[i] ?? 0) + (value ?? 0));
    heights.push(below);
  }
  return heights;
}

const DOT_RADIUS = 4;
const AXIS_WIDTH = 56;

export function uplotOptions(options: ChartOptions): Omit<uPlot.Options, "width"> {
  const grid = options.isDark ? "#25323a" : "#e3e9ec";
  const text = options.isDark ? "#94a6b0" : "#51626c";
  const { unitBytes } = options.value;
  const steps = unitBytes === undefined ? [] : byteSteps(unitBytes);
  const axis = {
    stroke: text,
    grid: { stroke: grid, width: 1 },
    ticks: { show: false },
    font: "11px sans-serif",
  };
  // Stacked areas are drawn from the top down, so that each covers the one above it.
  const order = options.isStacked
    ? options.lines.map((_, i) => options.lines.length - 1 - i)
    : null;
  return {
    height: options.height,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    tzDate: (seconds) => shifted(seconds * 1000, options.isUtc),
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false },
      points: { show: options.kind === "lines" && !options.isStacked },
    },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    focus: { alpha: 0.15 },
    scales: {
      x: {
        time: true,
        range: () => [options.range().sinceMs / 1000, options.range().untilMs / 1000],
      },
      y: {
        range: (_, min, max) => [
          Math.min(0, min ?? 0),
          (max ?? 0) > 0 ? max * 1.08 : (max ?? 0) < 0 ? 0 : 1,
        ],
      },
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 70,
        values: (_, ticks, __, ___, apartS) =>
          ticks.map((tick) => tickOf(shifted(tick * 1000, options.isUtc), apartS)),
      },
      {
        ...axis,
        size: AXIS_WIDTH,
        space: 28,
        ...(steps.length && { incrs: steps }),
        values: (_, ticks) => ticks.map((tick) => options.value(tick)),
      },
    ],
    series: [{}, ...options.lines.map((line) => seriesOf(line, options))],
    ...(order && { drawOrder: ["axes", "series"] as uPlot.DrawOrderKey[] }),
    hooks: {
      setSelect: [(chart) => select(chart, options)],
      setCursor: [
        (chart) => options.onpoint(chart.cursor.idx ?? null, (chart.cursor.left ?? 0) + AXIS_WIDTH),
      ],
      draw: [(chart) => drawMarkers(chart, options), (chart) => drawDots(chart, options)],
      ready: [
        (chart) => chart.over.addEventListener("click", (event) => choose(chart, options, event)),
      ],
    },
    // Stacked bars start where the one below ends, so they need no bands.
    ...(order && options.kind === "lines" && { bands: bandsOf(options.lines.length) }),
  };
}

function seriesOf(line: ChartLine, options: ChartOptions): uPlot.Series {
  const common = { label: line.name, stroke: line.color, spanGaps: false };
  if (options.kind === "bars") {
    return { ...common, width: 0, fill: line.color, points: { show: false }, paths: bars(options) };
  }
  return {
    ...common,
    width: 1.5,
    ...(line.dash?.length && { dash: [...line.dash] }),
    ...(options.isStacked && { fill: `${line.color}66` }),
    points: { show: options.isStacked ? false : hasFewPoints },
  };
}

/** Fill only the area between a stacked line and the one below. */
function bandsOf(count: number): uPlot.Band[] {
  return Array.from({ length: Math.max(0, count - 1) }, (_, i) => ({
    series: [i + 2, i + 1] as [number, number],
  }));
}

/** A value between two gaps is visible only as a point. */
function hasFewPoints(chart: uPlot, series: number): boolean {
  const values = chart.data[series] as (number | null | undefined)[];
  return values.filter((value) => value !== null && value !== undefined).length <= 2;
}

/** Bars one step wide, standing on the bar below. */
function bars(options: ChartOptions): uPlot.Series.PathBuilder {
  return (chart, series, from, to) => {
    const fill = new Path2D();
    const times = chart.data[0];
    const values = chart.data[series]!;
    const below = options.isStacked && series > 1 ? chart.data[series - 1]! : null;
    const step = options.stepMs / 1000;
    for (let i = from; i <= to; i++) {
      const value = values[i];
      const foot = below?.[i] ?? 0;
      if (value === null || value === undefined || value === foot) continue;
      const left = chart.valToPos(times[i]!, "x", true);
      const right = chart.valToPos(times[i]! + step, "x", true);
      const top = chart.valToPos(value, "y", true);
      const bottom = chart.valToPos(foot, "y", true);
      // Draw at least one pixel for any value.
      const height = Math.max(1, bottom - top);
      fill.rect(left + 0.5, bottom - height, Math.max(1, right - left - 1), height);
    }
    return { fill, stroke: null };
  };
}

function select(chart: uPlot, options: ChartOptions): void {
  const { left, width } = chart.select;
  if (width < 3) return;
  const sinceMs = chart.posToVal(left, "x") * 1000;
  const untilMs = chart.posToVal(left + width, "x") * 1000;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  options.onnarrow({ sinceMs, untilMs });
}

const MARKER_SIZE = 5;

export function markerColor(isDark: boolean): string {
  return isDark ? "#c4a5ff" : "#6d28d9";
}

/** Dashed lines with a triangle at the top. */
function drawMarkers(chart: uPlot, options: ChartOptions): void {
  const context = chart.ctx;
  const { top, height } = chart.bbox;
  const size = MARKER_SIZE * devicePixelRatio;
  context.save();
  context.strokeStyle = context.fillStyle = markerColor(options.isDark);
  context.lineWidth = devicePixelRatio;
  for (const { timeMs } of options.markers()) {
    const x = chart.valToPos(timeMs / 1000, "x", true);
    context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + height);
    context.stroke();
    context.beginPath();
    context.moveTo(x - size, top - size);
    context.lineTo(x + size, top - size);
    context.lineTo(x, top + size);
    context.fill();
  }
  context.restore();
}

function drawDots(chart: uPlot, options: ChartOptions): void {
  const context = chart.ctx;
  context.save();
  context.fillStyle = options.isDark ? "#ffd43b" : "#b45309";
  for (const { x, y } of dotPositions(chart, options, true)) {
    context.beginPath();
    context.arc(x, y, DOT_RADIUS * devicePixelRatio, 0, 2 * Math.PI);
    context.fill();
  }
  context.restore();
}

function choose(chart: uPlot, options: ChartOptions, event: MouseEvent): void {
  const near = dotPositions(chart, options, false)
    .map((each) => ({ ...each, away: Math.hypot(each.x - event.offsetX, each.y - event.offsetY) }))
    .filter((each) => each.away <= 3 * DOT_RADIUS)
    .sort((one, other) => one.away - other.away);
  if (near[0]) options.onchoose(near[0].dot);
}

function dotPositions(chart: uPlot, options: ChartOptions, onCanvas: boolean) {
  const { sinceMs, untilMs } = options.range();
  return options
    .dots()
    .filter((dot) => dot.timeMs >= sinceMs && dot.timeMs <= untilMs)
    .map((dot) => ({
      dot,
      x: chart.valToPos(dot.timeMs / 1000, "x", onCanvas),
      y: Math.max(
        chart.valToPos(dot.value, "y", onCanvas),
        onCanvas ? chart.bbox.top : 0, // Dots above the scale are drawn at its top.
      ),
    }));
}

/** Tick label: as short as the distance between ticks allows; midnight shows the date. */
function tickOf(date: Date, apartS: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const isMidnight = date.getHours() + date.getMinutes() + date.getSeconds() === 0;
  if (apartS >= 86_400 || isMidnight) return `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const minute = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return apartS >= 60 ? minute : `${minute}:${two(date.getSeconds())}`;
}

/** A date whose local fields are those of the displayed time zone. */
function shifted(ms: number, isUtc: boolean): Date {
  const date = new Date(ms);
  return isUtc ? new Date(ms + date.getTimezoneOffset() * 60_000) : date;
}
