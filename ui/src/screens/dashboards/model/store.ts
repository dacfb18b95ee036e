/** Dashboards of the node: read, stored, deleted. */

import type {
  DashboardsAnswer,
  DashboardSummary,
  StoredDashboard,
} from "../../../lib/api/types.gen";
import { ApiError, get, queryString, send } from "../../../lib/api/client";
import { type DashboardModel, parseDashboard, toFile, unusedName } from "./dashboard";

const PATH = "api/v1/dashboards";
const TRIES = 3;

export async function listDashboards(signal?: AbortSignal): Promise<DashboardSummary[]> {
  return (await get<DashboardsAnswer>(PATH, {}, signal)).dashboards;
}

export function readDashboard(name: string, signal?: AbortSignal): Promise<StoredDashboard> {
  return get(`${PATH}/${encodeURIComponent(name)}`, {}, signal);
}

/** In place of the text with that etag, or as a new one. */
export function saveDashboard(
  name: string,
  dash: DashboardModel,
  etag: string | null,
): Promise<StoredDashboard> {
  return send("PUT", `${PATH}/${encodeURIComponent(name)}${queryString({ etag })}`, toFile(dash));
}

export function deleteDashboard(name: string, etag: string): Promise<StoredDashboard> {
  return send("DELETE", `${PATH}/${encodeURIComponent(name)}${queryString({ etag })}`);
}

/** As a new one, under a name that is free. */
export async function createDashboard(dash: DashboardModel): Promise<StoredDashboard> {
  for (let tried = 1; ; tried++) {
    const taken = (await listDashboards()).map((each) => each.name);
    try {
      return await saveDashboard(unusedName(dash.title, taken), dash, null);
    } catch (error) {
      // Somebody may have taken the name meanwhile.
      if (!(error instanceof ApiError) || error.kind !== "conflict" || tried === TRIES) throw error;
    }
  }
}

/** A file that somebody has. Throws what is wrong with it. */
export function parseDashboardText(text: string): DashboardModel {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    throw new Error(`It is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return parseDashboard(file);
}

/** What was changed and not stored stays in this tab, until it is stored or file up. */
const DRAFT = "frazil.dashboard.";

export interface Draft {
  readonly etag: string;
  readonly dash: DashboardModel;
}

export function loadDraft(name: string): Draft | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(DRAFT + name) ?? "null") as {
      etag: string;
      file: unknown;
    } | null;
    return stored && { etag: String(stored.etag), dash: parseDashboard(stored.file) };
  } catch {
    return null; // Of another version, or half of it.
  }
}

export function saveDraft(name: string, draft: Draft | null): void {
  try {
    if (!draft) sessionStorage.removeItem(DRAFT + name);
    else {
      const stored = { etag: draft.etag, file: toFile(draft.dash) };
      sessionStorage.setItem(DRAFT + name, JSON.stringify(stored));
    }
  } catch {
    // Without room it is not stored; the page warns before it is left all the same.
  }
}
