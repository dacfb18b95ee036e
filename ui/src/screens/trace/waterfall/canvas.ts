/** Colours and texts of a canvas. */

import { serviceColor, severityColor } from "../../../lib/format/colors";
import { escapeText } from "../../../lib/format/escape";

const TOKENS = [
  "panel",
  "sunken",
  "hover",
  "chosen",
  "line",
  "line-strong",
  "text",
  "dim",
  "accent",
  "warn",
  "error",
  "mark",
] as const;

export interface Colors extends Record<(typeof TOKENS)[number], string> {
  readonly isDark: boolean;
  readonly font: string;
  readonly mono: string;
  readonly service: (service: string) => string;
  readonly severity: (severity: string) => string;
}

/** Theme colours, which a canvas cannot take from a style sheet. */
export function canvasColors(element: HTMLElement, isDark: boolean): Colors {
  const probe = document.createElement("span");
  element.append(probe);
  const style = getComputedStyle(probe);
  const color = (name: string) => {
    probe.style.color = `var(--${name})`;
    return [name, style.color];
  };
  const colors = Object.fromEntries(TOKENS.map(color)) as Record<(typeof TOKENS)[number], string>;
  const font = style.fontFamily;
  probe.style.fontFamily = "var(--mono)";
  const mono = style.fontFamily;
  probe.remove();
  return {
    ...colors,
    isDark,
    font,
    mono,
    service: (service) => serviceColor(service, isDark),
    severity: (severity) => severityColor(severity, isDark),
  };
}

/** Match the device pixels; returns a context in CSS pixels. */
export function fit(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const LETTERS_MAX = 300;
const KEPT_MAX = 20_000;

/** Caches text widths and escaped texts, because measuring is slow. */
export class TextCache {
  private widths = new Map<string, number>();
  private shown = new Map<string, string>();

  /** Escaped text. */
  private visible(text: string): string {
    let found = this.shown.get(text);
    if (found === undefined) {
      if (this.shown.size > KEPT_MAX) this.shown.clear();
      found = escapeText(text.slice(0, LETTERS_MAX));
      this.shown.set(text, found);
    }
    return found;
  }

  width(context: CanvasRenderingContext2D, text: string): number {
    const key = `${context.font}\0${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > KEPT_MAX) this.widths.clear();
      width = context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /** Draw a text, truncated to fit. Returns the x position after it. */
  draw(
    context: CanvasRenderingContext2D,
    text: string,
    x: number,
    y: number,
    room: number,
  ): number {
    if (room < 8) return x;
    let shown = this.visible(text);
    let width = this.width(context, shown);
    if (width > room) {
      const letters = Math.max(Math.floor((shown.length * room) / width) - 1, 1);
      shown = `${shown.slice(0, letters)}…`;
      width = Math.min(this.width(context, shown), room);
    }
    context.fillText(shown, x, y, room);
    return x + width;
  }
}
