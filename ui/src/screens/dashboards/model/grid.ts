/** The grid: 12 columns, rows without end. No two panels overlap, and nothing floats. */

export const COLUMNS = 12;
export const HEIGHT_MAX = 60;

export interface GridItem {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** All panels as far up as they go. `first` wins its place. The list keeps its order. */
export function pack<T extends GridItem>(panels: readonly T[], first?: string): T[] {
  const order = panels.toSorted(
    (one, other) =>
      Number(other.id === first) - Number(one.id === first) || one.y - other.y || one.x - other.x,
  );
  const apart: T[] = [];
  for (const panel of order) apart.push(below(fitted(panel), apart));
  const settled: T[] = [];
  const falling = apart.toSorted((one, other) => one.y - other.y || one.x - other.x);
  for (const panel of falling) settled.push(up(panel, settled));
  return panels.map((panel) => settled.find((each) => each.id === panel.id) ?? panel);
}

/** In the order in which they are read. */
export function readingOrder<T extends GridItem>(panels: readonly T[]): T[] {
  return panels.toSorted((one, other) => one.y - other.y || one.x - other.x);
}

/** One panel elsewhere; the others make room. */
export function moveItem<T extends GridItem>(
  panels: readonly T[],
  id: string,
  x: number,
  y: number,
) {
  return pack(
    panels.map((panel) => (panel.id === id ? { ...panel, x, y: Math.max(0, y) } : panel)),
    id,
  );
}

/** One panel larger or smaller; the others make room. */
export function resizeItem<T extends GridItem>(
  panels: readonly T[],
  id: string,
  w: number,
  h: number,
) {
  return pack(
    panels.map((panel) =>
      panel.id === id ? { ...panel, w: Math.min(w, COLUMNS - panel.x), h } : panel,
    ),
    id,
  );
}

/** One step, by keyboard: as far as it takes for something to change. */
export function nudgeItem<T extends GridItem>(
  panels: readonly T[],
  id: string,
  across: number,
  down: number,
): T[] {
  const panel = panels.find((each) => each.id === id);
  if (!panel) return [...panels];
  if (across) return moveItem(panels, id, panel.x + across, panel.y);
  for (let rows = 1; rows <= HEIGHT_MAX; rows++) {
    const next = moveItem(panels, id, panel.x, panel.y + rows * down);
    if (next.find((each) => each.id === id)?.y !== panel.y) return next;
  }
  return [...panels];
}

/** A new panel where there is room: below all others. */
export function appendItem<T extends GridItem>(panels: readonly T[], panel: T): T[] {
  const y = Math.max(0, ...panels.map((each) => each.y + each.h));
  return pack([...panels, { ...panel, x: 0, y }]);
}

export function overlap(one: GridItem, other: GridItem): boolean {
  return (
    one.x < other.x + other.w &&
    other.x < one.x + one.w &&
    one.y < other.y + other.h &&
    other.y < one.y + one.h
  );
}

/** Within the columns. */
function fitted<T extends GridItem>(panel: T): T {
  const w = Math.min(COLUMNS, Math.max(1, panel.w));
  const h = Math.min(HEIGHT_MAX, Math.max(1, panel.h));
  const x = Math.min(COLUMNS - w, Math.max(0, panel.x));
  return { ...panel, x, w, h };
}

function below<T extends GridItem>(panel: T, others: readonly T[]): T {
  let placed = panel;
  for (;;) {
    const hit = others.find((other) => overlap(placed, other));
    if (!hit) return placed;
    placed = { ...placed, y: hit.y + hit.h };
  }
}

function up<T extends GridItem>(panel: T, others: readonly T[]): T {
  const floor = others
    .filter((other) => other.x < panel.x + panel.w && panel.x < other.x + other.w)
    .map((other) => other.y + other.h);
  return { ...panel, y: Math.max(0, ...floor) };
}
