/** SVG path of a sparkline, from zero at the bottom to the maximum at the top. */
export function pathOf(values: readonly (number | null)[], width: number, height: number): string {
  const greatest = Math.max(0, ...values.map((value) => (isShown(value) ? value : 0)));
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let isDown = false;
  const parts: string[] = [];
  values.forEach((value, i) => {
    if (!isShown(value)) {
      isDown = false;
      return;
    }
    const y = height - 1 - (greatest ? (value / greatest) * (height - 2) : 0);
    parts.push(`${isDown ? "L" : "M"}${(i * step).toFixed(1)} ${y.toFixed(1)}`);
    isDown = true;
  });
  return parts.join("");
}

function isShown(value: number | null): value is number {
  return value !== null && Number.isFinite(value);
}
