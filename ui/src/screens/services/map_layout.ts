/** Layout of the service map. Loaded on first use. */

import { Graph as Dagre, layout as arrange } from "@dagrejs/dagre";

import type { Graph } from "./graph";

export const NODE = { width: 172, height: 62 };
export const LABEL = { width: 116, height: 30 };
const MARGIN = 12;

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  /** Centers of the services, in their order. */
  readonly services: readonly Point[];
  readonly calls: readonly DrawnCall[];
}

export interface DrawnCall {
  readonly path: string;
  /** Center of the label. */
  readonly label: Point;
}

/** Callers on the left, with few crossings. */
export function layout(graph: Graph): Drawing {
  const dagre = new Dagre({ multigraph: true });
  dagre.setGraph({
    rankdir: "LR",
    nodesep: 22,
    edgesep: 14,
    ranksep: 36,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  // Indices as ids: names may contain anything.
  graph.services.forEach((_, place) => dagre.setNode(String(place), { ...NODE }));
  graph.calls.forEach(({ from, to }, i) => {
    dagre.setEdge(String(from), String(to), { ...LABEL, labelpos: "c" }, String(i));
  });
  arrange(dagre);
  const { width = 0, height = 0 } = dagre.graph();
  return {
    width: Number.isFinite(width) ? width : 0,
    height: Number.isFinite(height) ? height : 0,
    services: graph.services.map((_, place) => pointOf(dagre.node(String(place)))),
    calls: graph.calls.map(({ from, to }, i) => {
      const edge = dagre.edge(String(from), String(to), String(i));
      return { path: curveOf(edge.points ?? []), label: pointOf(edge) };
    }),
  };
}

function pointOf({ x = 0, y = 0 }: { x?: number; y?: number }): Point {
  return { x, y };
}

/** A smooth curve through the points. */
export function curveOf(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (!first || !last) return "";
  const parts = [`M${at(first)}`];
  for (let i = 0; i < rest.length - 1; i++) {
    const [here, next] = [rest[i]!, rest[i + 1]!];
    const middle = { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    parts.push(`Q${at(here)} ${at(middle)}`);
  }
  parts.push(`L${at(last)}`);
  return parts.join("");
}

function at({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
