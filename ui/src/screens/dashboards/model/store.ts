/** Dashboards of the node: read, stored, deleted. */

import type {
  DashboardsAnswer,
  DashboardSummary,
  StoredDashboard,
} from "../../../lib/api/types.gen";
import { ApiError, get, queryOf, send } from "../../../lib/api/client";
import { type Dash, dashOf, fileOf, freeName } from "./dashboard";

const PATH = "api/v1/dashboards";
const TRIES = 3;

export async function allDashboards(signal?: AbortSignal): Promise<DashboardSummary[]> {
  return (await get<DashboardsAnswer>(PATH, {}, signal)).dashboards;
}

export function oneDashboard(name: string, signal?: AbortSignal): Promise<StoredDashboard> {
  return get(`${PATH}/${encodeURIComponent(name)}`, {}, signal);
}

/** In place of the text with that etag, or as a new one. */
export function storeDashboard(
  name: string,
  dash: Dash,
  etag: string | null,
): Promise<StoredDashboard> {
  return send("PUT", `${PATH}/${encodeURIComponent(name)}${queryOf({ etag })}`, fileOf(dash));
}

export function deleteDashboard(name: string, etag: string): Promise<StoredDashboard> {
  return send("DELETE", `${PATH}/${encodeURIComponent(name)}${queryOf({ etag })}`);
}

/** As a new one, under a name that is free. */
export async function createDashboard(dash: Dash): Promise<StoredDashboard> {
  for (let tried = 1; ; tried++) {
    const taken = (await allDashboards()).map((each) => each.name);
    try {
      return await storeDashboard(freeName(dash.title, taken), dash, null);
    } catch (error) {
      // Somebody may have taken the name meanwhile.
      if (!(error instanceof ApiError) || error.kind !== "conflict" || tried === TRIES) throw error;
    }
  }
}

/** A file that somebody has. Throws what is wrong with it. */
export function dashOfText(text: string): Dash {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw new Error(`It is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return dashOf(given);
}

/** What was changed and not stored stays in this tab, until it is stored or given up. */
const DRAFT = "frazil.dashboard.";

export interface Draft {
  readonly etag: string;
  readonly dash: Dash;
}

export function keptDraft(name: string): Draft | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(DRAFT + name) ?? "null") as {
      etag: string;
      file: unknown;
    } | null;
    return kept && { etag: String(kept.etag), dash: dashOf(kept.file) };
  } catch {
    return null; // Of another version, or half of it.
  }
}

export function keepDraft(name: string, draft: Draft | null): void {
  try {
    if (!draft) sessionStorage.removeItem(DRAFT + name);
    else {
      const kept = { etag: draft.etag, file: fileOf(draft.dash) };
      sessionStorage.setItem(DRAFT + name, JSON.stringify(kept));
    }
  } catch {
    // Without room it is not kept; the page warns before it is left all the same.
  }
}
