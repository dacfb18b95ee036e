/** Read, save and delete dashboards on the node. */

import type {
  DashboardsAnswer,
  DashboardSummary,
  StoredDashboard,
} from "../../../lib/api/types.gen";
import { ApiError, get, queryString, send } from "../../../lib/api/client";
import { unusedName } from "../../../lib/saved/file_name";
import { type DashboardModel, parseDashboard, toFile } from "./dashboard";

const PATH = "api/v1/dashboards";
const TRIES = 3;

export async function listDashboards(signal?: AbortSignal): Promise<DashboardSummary[]> {
  return (await get<DashboardsAnswer>(PATH, {}, signal)).dashboards;
}

export function readDashboard(name: string, signal?: AbortSignal): Promise<StoredDashboard> {
  return get(`${PATH}/${encodeURIComponent(name)}`, {}, signal);
}

/** Replace the version with that etag, or create a new file. */
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

/** Create a dashboard under an unused name. */
export async function createDashboard(dash: DashboardModel): Promise<StoredDashboard> {
  for (let tried = 1; ; tried++) {
    const taken = (await listDashboards()).map((each) => each.name);
    try {
      return await saveDashboard(unusedName(dash.title, taken, "dashboard"), dash, null);
    } catch (error) {
      // Another client may have taken the name.
      if (!(error instanceof ApiError) || error.kind !== "conflict" || tried === TRIES) throw error;
    }
  }
}

/** Parse an imported file. Throws an error that says what is wrong. */
export function parseDashboardText(text: string): DashboardModel {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    throw new Error(`Not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return parseDashboard(file);
}

/** Unsaved changes are kept in session storage until saved or discarded. */
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
    return null; // Of another version, or truncated.
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
    // Storage is full: the draft is lost, but the page warns before it is closed.
  }
}
