/** Editing state of one dashboard: stored version, changes and errors. */

import type { StoredDashboard } from "../../../lib/api/types.gen";
import { ApiError, messageOf } from "../../../lib/api/client";
import { appendItem, readingOrder, pack } from "../model/grid";
import {
  type DashboardModel,
  parseDashboard,
  type PanelModel,
  unusedId,
  toFileText,
} from "../model/dashboard";
import { createDashboard, saveDraft, loadDraft, saveDashboard } from "../model/store";

export class DashboardEditor {
  private stored = $state.raw<{ readonly etag: string; readonly dash: DashboardModel } | null>(
    null,
  );
  private draft = $state.raw<DashboardModel | null>(null);
  trouble = $state.raw<{ readonly message: string; readonly isConflict: boolean } | null>(null);

  constructor(private readonly name: string) {}

  get dash(): DashboardModel | undefined {
    return this.draft ?? this.stored?.dash;
  }

  /** Whether there are unsaved changes. */
  get isChanged(): boolean {
    return (
      this.draft !== null &&
      this.stored !== null &&
      toFileText(this.draft) !== toFileText(this.stored.dash)
    );
  }

  /** Start from the stored version and this tab's draft. */
  begin({ dashboard, etag }: StoredDashboard): void {
    if (!dashboard) return;
    const storedDraft = loadDraft(this.name);
    this.stored = { etag: storedDraft?.etag ?? etag, dash: parseDashboard(dashboard) };
    this.draft = storedDraft?.dash ?? null;
  }

  /** Keep unsaved changes while the user navigates. */
  keep(): void {
    if (!this.stored) return;
    const { etag } = this.stored;
    saveDraft(this.name, this.isChanged && this.draft ? { etag, dash: this.draft } : null);
  }

  change(to: Partial<DashboardModel>): void {
    if (this.dash) this.draft = { ...this.dash, ...to };
  }

  /** Replace or add a panel. */
  keepPanel(panel: PanelModel): void {
    const panels = this.dash?.panels ?? [];
    const isThere = panels.some((each) => each.id === panel.id);
    const changed = panels.map((each) => (each.id === panel.id ? panel : each));
    this.change({ panels: isThere ? pack(changed, panel.id) : appendItem(panels, panel) });
  }

  duplicate(panel: PanelModel): void {
    const panels = this.dash?.panels ?? [];
    this.change({ panels: appendItem(panels, { ...panel, id: unusedId(panels) }) });
  }

  remove(panel: PanelModel): void {
    const panels = this.dash?.panels ?? [];
    this.change({ panels: pack(panels.filter((each) => each.id !== panel.id)) });
  }

  save = async (): Promise<void> => {
    if (!this.draft || !this.stored) return;
    const dash = { ...this.draft, panels: readingOrder(this.draft.panels) };
    try {
      const { etag } = await saveDashboard(this.name, dash, this.stored.etag);
      this.stored = { etag, dash };
      this.draft = null;
      this.trouble = null;
    } catch (error) {
      const isConflict = error instanceof ApiError && error.kind === "conflict";
      this.trouble = { message: messageOf(error), isConflict };
    }
  };

  /** Save as a copy; returns its name, or null on failure. */
  async saveCopy(): Promise<string | null> {
    if (!this.dash) return null;
    try {
      const { name } = await createDashboard({ ...this.dash, title: `${this.dash.title} (copy)` });
      this.discard();
      return name;
    } catch (error) {
      this.trouble = { message: messageOf(error), isConflict: false };
      return null;
    }
  }

  discard(): void {
    saveDraft(this.name, null);
    this.draft = null;
    this.trouble = null;
  }
}
