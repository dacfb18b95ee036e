/** One dashboard as it is edited: what is stored, what was changed, and what went wrong. */

import type { StoredDashboard } from "../../../lib/api/types.gen";
import { ApiError, messageOf } from "../../../lib/api/client";
import { appended, inOrder, packed } from "../model/grid";
import { type Dash, dashOf, type DashPanel, freeId, textOf } from "../model/dashboard";
import { createDashboard, keepDraft, keptDraft, storeDashboard } from "../model/store";

export class Editing {
  private stored = $state.raw<{ readonly etag: string; readonly dash: Dash } | null>(null);
  private draft = $state.raw<Dash | null>(null);
  trouble = $state.raw<{ readonly message: string; readonly isConflict: boolean } | null>(null);

  constructor(private readonly name: string) {}

  get dash(): Dash | undefined {
    return this.draft ?? this.stored?.dash;
  }

  /** Is there something to save? */
  get isChanged(): boolean {
    return (
      this.draft !== null && this.stored !== null && textOf(this.draft) !== textOf(this.stored.dash)
    );
  }

  /** Begin with what the node has, and with what was changed before in this tab. */
  begin({ dashboard, etag }: StoredDashboard): void {
    if (!dashboard) return;
    const kept = keptDraft(this.name);
    this.stored = { etag: kept?.etag ?? etag, dash: dashOf(dashboard) };
    this.draft = kept?.dash ?? null;
  }

  /** Remember what is not saved, for whoever leaves and comes back. */
  keep(): void {
    if (!this.stored) return;
    const { etag } = this.stored;
    keepDraft(this.name, this.isChanged && this.draft ? { etag, dash: this.draft } : null);
  }

  change(to: Partial<Dash>): void {
    if (this.dash) this.draft = { ...this.dash, ...to };
  }

  /** A panel as it is now, or a new one. */
  keepPanel(panel: DashPanel): void {
    const panels = this.dash?.panels ?? [];
    const isThere = panels.some((each) => each.id === panel.id);
    const changed = panels.map((each) => (each.id === panel.id ? panel : each));
    this.change({ panels: isThere ? packed(changed, panel.id) : appended(panels, panel) });
  }

  duplicate(panel: DashPanel): void {
    const panels = this.dash?.panels ?? [];
    this.change({ panels: appended(panels, { ...panel, id: freeId(panels) }) });
  }

  remove(panel: DashPanel): void {
    const panels = this.dash?.panels ?? [];
    this.change({ panels: packed(panels.filter((each) => each.id !== panel.id)) });
  }

  save = async (): Promise<void> => {
    if (!this.draft || !this.stored) return;
    const dash = { ...this.draft, panels: inOrder(this.draft.panels) };
    try {
      const { etag } = await storeDashboard(this.name, dash, this.stored.etag);
      this.stored = { etag, dash };
      this.draft = null;
      this.trouble = null;
    } catch (error) {
      const isConflict = error instanceof ApiError && error.kind === "conflict";
      this.trouble = { message: messageOf(error), isConflict };
    }
  };

  /** Under another name, which it gives; null when that failed. */
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
    keepDraft(this.name, null);
    this.draft = null;
    this.trouble = null;
  }
}
