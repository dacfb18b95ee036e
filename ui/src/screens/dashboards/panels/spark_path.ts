/** SVG path of a sparkline. */

export function sparkPath(
  values: readonly (number | null | undefined)[],
  width: number,
  height: number,
): string {
  const numbers = values.filter((value): value is number => typeof value === "number");
  const low = Math.min(0, ...numbers);
  const high = Math.max(...numbers, low + Number.MIN_VALUE);
  const last = Math.max(1, values.length - 1);
  let path = "";
  let isDown = false;
  values.forEach((value, i) => {
    if (value === null) isDown = false;
    if (typeof value !== "number") return;
    const x = (width * i) / last;
    const y = height - (height * (value - low)) / (high - low);
    path += `${isDown ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  return path;
}
