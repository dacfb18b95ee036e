/** Draws the flame graph. */

import type { Flame } from "./flame";
import type { Colors, TextCache } from "../waterfall/canvas";
import { nameOf, serviceOf, type Spans } from "../model/spans";

export const FLAME_ROW = 20;
const LEAST = 0.6;
const NAMED = 28;
const FAILED = 3;

export interface FlameScene {
  readonly flame: Flame;
  readonly spans: Spans;
  /** The zoomed box; 0 is the root. */
  readonly closer: number;
  readonly chosen: number;
  readonly pointed: number;
  readonly matches: Uint8Array | null;
  readonly colors: Colors;
  readonly texts: TextCache;
  readonly width: number;
  readonly height: number;
}

/** Time at a position. */
export function nanoOf({ flame, closer, width }: FlameScene, x: number): number {
  return flame.left[closer]! + (x / width) * flame.width[closer]!;
}

export function drawFlame(context: CanvasRenderingContext2D, scene: FlameScene): void {
  const { flame, closer, width, colors } = scene;
  context.globalAlpha = 1;
  context.fillStyle = colors.panel;
  context.fillRect(0, 0, width, scene.height);
  context.textBaseline = "middle";
  context.font = `11px ${colors.font}`;
  const above = new Set<number>();
  for (let box = flame.parent[closer]!; box >= 0; box = flame.parent[box]!) above.add(box);
  const scale = width / Math.max(flame.width[closer]!, 1);
  const [low, high] = [flame.left[closer]!, flame.left[closer]! + flame.width[closer]!];
  for (let box = 0; box < flame.count; box++) {
    if (above.has(box)) {
      rectangle(context, scene, box, 0, width, 0.5);
      continue;
    }
    const left = flame.left[box]!;
    const right = left + flame.width[box]!;
    if (right <= low || left >= high || flame.depth[box]! < flame.depth[closer]!) continue;
    const x = (left - low) * scale;
    rectangle(context, scene, box, x, (right - left) * scale, 1);
  }
}

function rectangle(
  context: CanvasRenderingContext2D,
  scene: FlameScene,
  box: number,
  x: number,
  width: number,
  alpha: number,
): void {
  if (width < LEAST) return;
  const { flame, spans, colors, texts } = scene;
  const sample = flame.sample[box]!;
  const y = flame.depth[box]! * FLAME_ROW;
  const isMissed = scene.matches !== null && !scene.matches[sample];
  const service = sample < 0 ? "" : serviceOf(spans, sample);
  context.globalAlpha = box === scene.pointed ? 0.75 : isMissed ? 0.35 : alpha;
  context.fillStyle = sample < 0 ? colors.line : colors.service(service);
  const room = Math.max(width - 1, LEAST);
  context.fillRect(x, y, room, FLAME_ROW - 1);
  if (flame.failed[box]) {
    // Red share of the box: the share of failed calls.
    const share = flame.failed[box]! / flame.calls[box]!;
    const height = share === 1 ? FLAME_ROW - 1 : FAILED;
    context.fillStyle = colors.error;
    context.fillRect(x, y + FLAME_ROW - 1 - height, Math.max(room * share, LEAST), height);
  }
  context.globalAlpha = 1;
  if (box === scene.chosen) {
    context.strokeStyle = colors.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(width - 3, 1), FLAME_ROW - 3);
  }
  if (width < NAMED) return;
  const text = sample < 0 ? "all" : `${service}: ${nameOf(spans, sample)}`;
  context.fillStyle = sample < 0 ? colors.text : colors.panel;
  texts.draw(context, text, x + 4, y + FLAME_ROW / 2, width - 8);
}
