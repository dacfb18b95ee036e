/** The visible time window, in nanoseconds since the start of the trace. */

export interface Window {
  readonly low: number;
  readonly high: number;
}

/** Shortest window: clocks are not more precise. */
const LEAST = 100;

export function fullWindow(total: number): Window {
  return { low: 0, high: total };
}

export function isFullWindow(window: Window, total: number): boolean {
  return window.low <= 0 && window.high >= total;
}

/** Clamp a window to the trace and to the minimum length. */
export function clampWindow({ low, high }: Window, total: number): Window {
  // Tolerates rounding.
  if (high - low > total * (1 - 1e-9)) return fullWindow(total);
  const length = Math.min(Math.max(high - low, Math.min(LEAST, total)), total);
  const begin = Math.min(Math.max(low, 0), total - length);
  return { low: begin, high: begin + length };
}

/** Window of an address; invalid values mean the whole trace. */
export function windowOf(low: number | null, high: number | null, total: number): Window {
  const [from, to] = [low ?? 0, high ?? total];
  return from < to ? clampWindow({ low: from, high: to }, total) : fullWindow(total);
}

/** Zoom by a factor around a share of the window. */
export function zoomWindow(window: Window, factor: number, share: number, total: number): Window {
  const length = window.high - window.low;
  const at = window.low + length * share;
  const wanted = Math.min(Math.max(length * factor, Math.min(LEAST, total)), total);
  return clampWindow({ low: at - wanted * share, high: at + wanted * (1 - share) }, total);
}

/** Move by a share of the length. */
export function panWindow(window: Window, share: number, total: number): Window {
  const by = (window.high - window.low) * share;
  return clampWindow({ low: window.low + by, high: window.high + by }, total);
}

/** Round tick times inside the window, at most `count`. */
export function ticks({ low, high }: Window, most: number): number[] {
  const step = niceStep((high - low) / Math.max(most, 1));
  const found: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found;
}

function niceStep(least: number): number {
  const size = 10 ** Math.floor(Math.log10(least));
  return size * ([1, 2, 5].find((each) => each * size >= least) ?? 10);
}
