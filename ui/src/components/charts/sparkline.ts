/** SVG paths of sparklines. */

export type Values = readonly (number | null)[];

/** Path of a line through the values, from edge to edge; null values are gaps. */
export function linePath(values: Values, width: number, height: number, max: number): string {
  return runsOf(values)
    .map((run) => `M${run.map((i) => pointText(values, i, width, height, max)).join("L")}`)
    .join("");
}

/** The line closed along the bottom, to be filled. */
export function areaPath(values: Values, width: number, height: number, max: number): string {
  return runsOf(values)
    .map((run) => {
      const line = run.map((i) => pointText(values, i, width, height, max)).join("L");
      const [first, last] = [run[0] ?? 0, run.at(-1) ?? 0];
      const foot = (i: number) => `${digits(leftOf(values, i, width))},${height}`;
      return `M${foot(first)}L${line}L${foot(last)}Z`;
    })
    .join("");
}

/** The largest value, or 1: an all-zero line is drawn at the bottom. */
export function topOf(values: Values): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0) || 1;
}

/** Runs of consecutive indices that have a value. */
function runsOf(values: Values): number[][] {
  const runs: number[][] = [];
  values.forEach((value, i) => {
    if (value === null) return;
    const last = runs.at(-1);
    if (last && last.at(-1) === i - 1) last.push(i);
    else runs.push([i]);
  });
  return runs;
}

function pointText(values: Values, i: number, width: number, height: number, max: number): string {
  const y = height - Math.min(1, (values[i] ?? 0) / max) * (height - 1);
  return `${digits(leftOf(values, i, width))},${digits(y)}`;
}

function leftOf(values: Values, i: number, width: number): number {
  return values.length > 1 ? (i / (values.length - 1)) * width : 0;
}

function digits(value: number): number {
  return Math.round(value * 100) / 100;
}
