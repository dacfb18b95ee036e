/**
 * A grid of 12 columns and unlimited rows. Panels do not overlap, and move up as far as they can.
 */

export const COLUMNS = 12;
export const HEIGHT_MAX = 60;

export interface GridItem {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** Move all panels up as far as possible. `first` keeps its position. The list keeps its order. */
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

/** Panels in reading order. */
export function readingOrder<T extends GridItem>(panels: readonly T[]): T[] {
  return panels.toSorted((one, other) => one.y - other.y || one.x - other.x);
}

/** Move a panel; the others make room. */
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

/** Resize a panel; the others make room. */
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

/** Move a panel by keyboard, as far as needed to change the layout. */
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

/** Add a panel below all others. */
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

/** Clamp a panel to the grid. */
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
