/** What a screen may have an open editor do. */
export interface EditorHandle {
  /** What is selected, and where it begins; empty when nothing is. */
  readonly selected: () => { text: string; from: number };
  /** In the place of what is selected. */
  readonly insert: (text: string) => void;
  readonly focus: () => void;
}
