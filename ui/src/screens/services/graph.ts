/** The service graph: nodes, edges and line widths. */

import type { Dependency, Service } from "../../lib/api/types.gen";

export interface Graph {
  readonly services: readonly GraphService[];
  readonly calls: readonly GraphCall[];
  /** Number of calls left out, the rarest ones. */
  readonly leftOut: number;
}

export interface GraphService {
  readonly name: string;
  /** Null for a called service that sent no spans in the range. */
  readonly service: Service | null;
}

export interface GraphCall {
  readonly call: Dependency;
  /** Indices into the service list: names may contain anything. */
  readonly from: number;
  readonly to: number;
}

const CALLS_MAX = 200;

/** All services that sent spans or were called. The most frequent calls come first. */
export function graphOf(services: readonly Service[], calls: readonly Dependency[]): Graph {
  const shown = calls.toSorted((one, other) => other.call_count - one.call_count);
  const kept = shown.slice(0, CALLS_MAX);
  const known = new Map(services.map((service) => [service.name, service]));
  const names = new Set([
    ...services
      .filter((service) => service.request_count || service.span_count)
      .map((service) => service.name),
    ...kept.flatMap((call) => [call.caller, call.callee]),
  ]);
  const placeOf = new Map([...names].map((name, place) => [name, place]));
  return {
    services: [...names].map((name) => ({ name, service: known.get(name) ?? null })),
    calls: kept.map((call) => ({
      call,
      from: placeOf.get(call.caller) ?? 0,
      to: placeOf.get(call.callee) ?? 0,
    })),
    leftOut: shown.length - kept.length,
  };
}

/** Traces of a call: through both services or, for links, those of the message consumer. */
export function tracesOf({ caller, callee, is_linked }: Dependency): Record<string, string[]> {
  return is_linked ? { is: [`service_name=${callee}`] } : { through: [caller, callee] };
}

/** Square root scale: ten times the calls are about three times as wide. */
export function widthOf(callCount: number, most: number): number {
  return 1 + 5 * Math.sqrt(callCount / Math.max(1, most));
}

export interface View {
  readonly x: number;
  readonly y: number;
  /** Zoom factor; 1 is the original layout. */
  readonly zoom: number;
}

const ZOOM_MIN = 0.1;
const ZOOM_MAX = 3;

/** Fit the layout into the viewport below `top`, without enlarging it. */
export function fitted(
  size: { width: number; height: number },
  room: { width: number; height: number; top: number },
): View {
  const height = room.height - room.top;
  const zoom = Math.max(
    ZOOM_MIN,
    Math.min(1, room.width / Math.max(1, size.width), height / Math.max(1, size.height)),
  );
  return {
    x: (room.width - size.width * zoom) / 2,
    y: room.top + (height - size.height * zoom) / 2,
    zoom,
  };
}

/** Zoom around a point of the viewport. */
export function zoomed(view: View, factor: number, at: { x: number; y: number }): View {
  const zoom = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, view.zoom * factor));
  const ratio = zoom / view.zoom;
  return { x: at.x - (at.x - view.x) * ratio, y: at.y - (at.y - view.y) * ratio, zoom };
}
