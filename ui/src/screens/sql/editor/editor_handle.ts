/** Operations of an open editor. */
export interface EditorHandle {
  /** The selection and its start; empty if nothing is selected. */
  readonly selected: () => { text: string; from: number };
  /** Replaces the selection. */
  readonly insert: (text: string) => void;
  readonly focus: () => void;
}
