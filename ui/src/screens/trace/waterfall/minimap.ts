/** Draws all spans as a minimap. */

import { duration } from "../../../lib/format/format";
import type { Colors } from "./canvas";
import type { Spans } from "../model/spans";
import { ticks, fullWindow } from "../model/window";

const TICKS = 16;

export function drawAll(
  context: CanvasRenderingContext2D,
  spans: Spans,
  colors: Colors,
  width: number,
  height: number,
): void {
  const ratio = context.getTransform().a || 1;
  const [columns, lines] = [Math.round(width * ratio), Math.round(height * ratio)];
  const image = context.createImageData(columns, lines);
  const pixels = new Uint32Array(image.data.buffer);
  const scale = columns / spans.total;
  const top = TICKS * ratio;
  const row = Math.min((lines - top - 2) / spans.count, 5 * ratio);
  const thick = Math.max(Math.round(row * 0.8), 1);
  // Pixels are written directly: a canvas rectangle per span would be slow.
  const one = (i: number, color: number) => {
    const from = Math.min(Math.floor(spans.offset[i]! * scale), columns - 1);
    const to = Math.min(Math.ceil((spans.offset[i]! + spans.length[i]!) * scale), columns);
    const first = Math.floor(top + i * row);
    for (let y = first; y < first + thick; y++) {
      pixels.fill(color, y * columns + from, y * columns + Math.max(to, from + 1));
    }
  };
  const pixelColors = spans.services.map((service) => pixelOf(colors.service(service)));
  const error = pixelOf(colors.error);
  for (let i = 0; i < spans.count; i++)
    if (!spans.isFailed[i]) one(i, pixelColors[spans.service[i]!]!);
  // Failed spans are drawn last, on top.
  for (let i = 0; i < spans.count; i++) if (spans.isFailed[i]) one(i, error);
  context.putImageData(image, 0, 0);
  context.font = `11px ${colors.font}`;
  context.textBaseline = "middle";
  for (const at of ticks(fullWindow(spans.total), Math.max(width / 140, 1))) {
    const x = Math.round((at / spans.total) * width);
    context.fillStyle = colors.line;
    context.fillRect(x, 0, 1, height);
    context.fillStyle = colors.dim;
    if (x + 60 < width) context.fillText(at === 0 ? "0" : duration(at), x + 4, TICKS / 2 + 1);
  }
}

/** `#rrggbb` or `rgb(r, g, b)` as a pixel. */
function pixelOf(color: string): number {
  const hex = /^#(..)(..)(..)$/
    .exec(color)
    ?.slice(1)
    .map((pair) => parseInt(pair, 16));
  const [red = 0, green = 0, blue = 0] = hex ?? color.match(/\d+/g)?.map(Number) ?? [];
  return new Uint32Array(Uint8Array.of(red, green, blue, 255).buffer)[0]!;
}
