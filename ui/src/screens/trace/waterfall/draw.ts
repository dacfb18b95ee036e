/** Draws the waterfall: a tree on the left, bars over time on the right. */

import type { LogRow } from "../../../lib/api/types.gen";
import { duration } from "../../../lib/format/format";
import { type LogDots, firstDot } from "../logs/logs";
import type { Colors, TextCache } from "./canvas";
import { nameOf, serviceOf, type Spans } from "../model/spans";
import { ticks, type Window } from "../model/window";

export const ROW = 22;
export const HEAD = 24;
const BAR = 12;
const BAR_LEAST = 3;
const INDENT = 12;
const GUIDED = 3;
const TRIANGLE = 14;
const DOT = 3;
const EDGE = 6;
const TICK_WIDTH = 90;

export interface Scene {
  readonly spans: Spans;
  readonly rows: Int32Array;
  readonly closed: Uint8Array;
  readonly window: Window;
  readonly chosen: number;
  readonly pointed: number;
  readonly matches: Uint8Array | null;
  readonly isCritical: boolean;
  readonly dots: LogDots;
  readonly logs: readonly LogRow[];
  readonly colors: Colors;
  readonly texts: TextCache;
  readonly width: number;
  readonly height: number;
  /** Width of the tree. */
  readonly names: number;
  readonly scroll: number;
  /** Pointer position over the time axis, or null. */
  readonly cursor: number | null;
}

type Context = CanvasRenderingContext2D;

/** Indent per level: smaller in deep trees, so that names have space. */
export function indentOf(scene: Pick<Scene, "spans" | "names">): number {
  return Math.min(INDENT, (scene.names * 0.45) / Math.max(scene.spans.deepest, 1));
}

/** Position of a time. */
export function xOf(scene: Pick<Scene, "window" | "names" | "width">, nano: number): number {
  const { low, high } = scene.window;
  const room = scene.width - scene.names - EDGE * 2;
  return scene.names + EDGE + ((nano - low) / (high - low)) * room;
}

/** Time at a position. */
export function nanoAt(scene: Pick<Scene, "window" | "names" | "width">, x: number): number {
  const { low, high } = scene.window;
  const room = Math.max(scene.width - scene.names - EDGE * 2, 1);
  return low + ((x - scene.names - EDGE) / room) * (high - low);
}

export function draw(context: Context, scene: Scene): void {
  const { colors, width, height, names } = scene;
  context.globalAlpha = 1;
  context.fillStyle = colors.panel;
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  context.font = `12px ${colors.font}`;
  const first = Math.max(Math.floor(scene.scroll / ROW), 0);
  const last = Math.min(Math.ceil((scene.scroll + height - HEAD) / ROW), scene.rows.length);
  const top = (row: number) => HEAD + row * ROW - scene.scroll;
  for (let row = first; row < last; row++) background(context, scene, row, top(row));
  grid(context, scene);
  context.save();
  context.beginPath();
  context.rect(0, HEAD, names, height);
  context.clip();
  for (let row = first; row < last; row++) label(context, scene, scene.rows[row]!, top(row));
  context.restore();
  context.save();
  context.beginPath();
  context.rect(names, HEAD, width - names, height);
  context.clip();
  for (let row = first; row < last; row++) bar(context, scene, scene.rows[row]!, top(row));
  dots(context, scene, first, last);
  context.restore();
  head(context, scene);
}

function background(context: Context, scene: Scene, row: number, y: number): void {
  const { colors, width } = scene;
  const index = scene.rows[row]!;
  const fill =
    index === scene.chosen ? colors.chosen : index === scene.pointed ? colors.hover : null;
  if (fill) {
    context.fillStyle = fill;
    context.fillRect(0, y, width, ROW);
  }
  if (scene.matches?.[index]) {
    context.fillStyle = colors.mark;
    context.globalAlpha = index === scene.chosen ? 0.9 : 0.55;
    context.fillRect(0, y, scene.names, ROW);
    context.globalAlpha = 1;
  }
  if (index === scene.chosen) {
    context.fillStyle = colors.accent;
    context.fillRect(0, y, 3, ROW);
  }
}

function grid(context: Context, scene: Scene): void {
  context.fillStyle = scene.colors.line;
  for (const at of ticksOf(scene)) {
    context.fillRect(Math.round(xOf(scene, at)), HEAD, 1, scene.height);
  }
  context.fillRect(scene.names, 0, 1, scene.height);
}

function ticksOf(scene: Scene): number[] {
  return ticks(scene.window, Math.max((scene.width - scene.names) / TICK_WIDTH, 1));
}

function head(context: Context, scene: Scene): void {
  const { colors, texts, width, names } = scene;
  context.fillStyle = colors.sunken;
  context.fillRect(0, 0, width, HEAD);
  context.fillStyle = colors.line;
  context.fillRect(0, HEAD - 1, width, 1);
  context.fillRect(names, 0, 1, HEAD);
  context.font = `11px ${colors.font}`;
  context.fillStyle = colors.dim;
  texts.draw(context, "Service and operation", 8, HEAD / 2, names - 12);
  for (const at of ticksOf(scene)) {
    const x = xOf(scene, at);
    const text = at === 0 ? "0" : duration(at);
    const room = texts.width(context, text);
    if (x + room + 6 < width) texts.draw(context, text, x + 4, HEAD / 2, room + 1);
    context.fillRect(Math.round(x), HEAD - 6, 1, 6);
  }
  if (scene.cursor !== null) hairline(context, scene, scene.cursor);
}

/** Pointer line with its time. */
function hairline(context: Context, scene: Scene, x: number): void {
  const { colors, texts } = scene;
  const text = `${duration(Math.max(nanoAt(scene, x), 0))}`;
  const width = texts.width(context, text) + 8;
  const left = Math.min(x + 2, scene.width - width);
  context.fillStyle = colors["line-strong"];
  context.fillRect(Math.round(x), 0, 1, scene.height);
  context.fillStyle = colors.panel;
  context.fillRect(left, 3, width, HEAD - 6);
  context.fillStyle = colors.text;
  texts.draw(context, text, left + 4, HEAD / 2, width);
}

function label(context: Context, scene: Scene, index: number, y: number): void {
  const { spans, colors, texts, names } = scene;
  const middle = y + ROW / 2;
  const depth = spans.depth[index]!;
  const indent = indentOf(scene);
  const left = 8 + depth * indent;
  context.fillStyle = colors.line;
  // In a very deep tree the lines would be a slow grey area.
  for (let i = 0; i < depth && indent >= GUIDED; i++) {
    context.fillRect(Math.round(8 + i * indent + TRIANGLE / 2 - 2), y, 1, ROW);
  }
  if (spans.children[index]) {
    context.fillStyle = colors.dim;
    triangle(context, left, middle, scene.closed[index] === 1);
  }
  let x = left + TRIANGLE;
  context.fillStyle = colors.service(serviceOf(spans, index));
  context.fillRect(x, y + 4, 3, ROW - 8);
  x += 8;
  if (spans.isFailed[index] || (scene.closed[index] && spans.failedDescendants[index])) {
    x = mark(context, scene, x, middle, spans.isFailed[index] === 1);
  }
  context.font = `12px ${colors.font}`;
  context.fillStyle = colors.text;
  x = texts.draw(context, serviceOf(spans, index), x, middle, names - x - 6);
  context.fillStyle = spans.isFailed[index] ? colors.error : colors.dim;
  x = texts.draw(context, nameOf(spans, index), x + 7, middle, names - x - 12);
  if (spans.children[index] && x + 34 < names) {
    context.font = `10px ${colors.font}`;
    context.fillStyle = colors.dim;
    texts.draw(context, String(spans.children[index]), x + 6, middle + 0.5, 30);
  }
}

function triangle(context: Context, x: number, y: number, isClosed: boolean): void {
  context.beginPath();
  if (isClosed) {
    context.moveTo(x + 1, y - 4.5);
    context.lineTo(x + 7, y);
    context.lineTo(x + 1, y + 4.5);
  } else {
    context.moveTo(x - 0.5, y - 3);
    context.lineTo(x + 8.5, y - 3);
    context.lineTo(x + 4, y + 3.5);
  }
  context.fill();
}

/** A filled circle: the span failed. A ring: a hidden descendant failed. */
function mark(context: Context, scene: Scene, x: number, y: number, isOwn: boolean): number {
  context.beginPath();
  context.arc(x + 4, y, isOwn ? 4 : 3.2, 0, 2 * Math.PI);
  if (isOwn) {
    context.fillStyle = scene.colors.error;
    context.fill();
  } else {
    context.strokeStyle = scene.colors.error;
    context.lineWidth = 1.6;
    context.stroke();
  }
  return x + 12;
}

function bar(context: Context, scene: Scene, index: number, y: number): void {
  const { spans, colors, names, width } = scene;
  const begin = xOf(scene, spans.offset[index]!);
  const end = xOf(scene, spans.offset[index]! + spans.length[index]!);
  const left = Math.max(begin, names - 4);
  const right = Math.min(Math.max(end, begin + BAR_LEAST), width + 4);
  const middle = y + ROW / 2;
  if (right < names + 1 || left > width) return beyond(context, scene, right < names + 1, middle);
  const isMissed = scene.matches !== null && !scene.matches[index];
  context.globalAlpha = isMissed ? 0.4 : 1;
  context.fillStyle = spans.isFailed[index]
    ? colors.error
    : colors.service(serviceOf(spans, index));
  context.fillRect(left, middle - BAR / 2, right - left, BAR);
  context.globalAlpha = 1;
  if (scene.closed[index] && spans.failedDescendants[index] && !spans.isFailed[index]) {
    context.fillStyle = colors.error;
    context.fillRect(left, middle - BAR / 2 - 3, right - left, 2);
  }
  if (spans.isSkewed[index] || spans.isOrphan[index]) {
    context.fillStyle = colors.warn;
    context.fillRect(left - 3, middle - BAR / 2 - 1, 2, BAR + 2);
  }
  if (scene.isCritical) critical(context, scene, index, middle);
  lengthOf(context, scene, index, left, right, middle);
}

/** An arrow for a bar outside the window. */
function beyond(context: Context, scene: Scene, isLeft: boolean, y: number): void {
  const x = isLeft ? scene.names + 4 : scene.width - 4;
  const to = isLeft ? 5 : -5;
  context.fillStyle = scene.colors.dim;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + to, y - 3.5);
  context.lineTo(x + to, y + 3.5);
  context.fill();
}

function critical(context: Context, scene: Scene, index: number, y: number): void {
  const { spans, colors } = scene;
  context.fillStyle = colors.text;
  for (let i = spans.partsAt[index]!; i < spans.partsAt[index + 1]!; i += 2) {
    const left = Math.max(xOf(scene, spans.parts[i]!), scene.names);
    const right = Math.min(xOf(scene, spans.parts[i + 1]!), scene.width);
    if (left <= right) context.fillRect(left, y + BAR / 2 + 1, Math.max(right - left, 1), 2);
  }
}

function lengthOf(
  context: Context,
  scene: Scene,
  index: number,
  left: number,
  right: number,
  y: number,
): void {
  const { texts, colors } = scene;
  context.font = `11px ${colors.font}`;
  const text = duration(scene.spans.length[index]);
  const room = texts.width(context, text) + 1;
  context.fillStyle = colors.dim;
  if (right + room + 8 < scene.width) {
    texts.draw(context, text, right + 5, y, room);
  } else if (left - room - 8 > scene.names) {
    texts.draw(context, text, left - room - 5, y, room);
  } else {
    // Text on the bar, with inverted brightness.
    context.font = `10px ${colors.font}`;
    context.fillStyle = colors.panel;
    const x = Math.min(right, scene.width) - texts.width(context, text) - 8;
    texts.draw(context, text, x, y + 0.5, room);
  }
}

function dots(context: Context, scene: Scene, first: number, last: number): void {
  const { colors } = scene;
  context.lineWidth = 1.5;
  context.strokeStyle = colors.panel;
  for (let i = firstDot(scene.dots, first); i < scene.dots.row.length; i++) {
    const row = scene.dots.row[i]!;
    if (row >= last) return;
    const x = xOf(scene, scene.dots.at[i]!);
    context.fillStyle = colors.severity(scene.logs[scene.dots.line[i]!]?.severity ?? "");
    context.beginPath();
    context.arc(x, HEAD + row * ROW - scene.scroll + ROW - 4, DOT, 0, 2 * Math.PI);
    context.stroke();
    context.fill();
  }
}

/** Record whose dot is near, or -1. */
export function dotAt(scene: Scene, row: number, x: number): number {
  let found = -1;
  let nearest = 6;
  for (let i = firstDot(scene.dots, row); scene.dots.row[i] === row; i++) {
    const distance = Math.abs(xOf(scene, scene.dots.at[i]!) - x);
    if (distance <= nearest) [found, nearest] = [scene.dots.line[i]!, distance];
  }
  return found;
}
