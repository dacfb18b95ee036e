/** Offsets of rows in a long list; only heights that differ from the default are stored. */

export class RowHeights {
  /** Numbers of rows with another height, ascending, and the accumulated difference up to each. */
  private numbers: number[] = [];
  private sums: number[] = [];
  private readonly heights = new Map<number, number>();

  constructor(readonly rowHeight: number) {}

  heightOf(number: number): number {
    return this.heights.get(number) ?? this.rowHeight;
  }

  /** Store measured heights; default heights are dropped. */
  note(measured: Iterable<readonly [number, number]>): void {
    for (const [number, height] of measured) {
      if (height === this.rowHeight) this.heights.delete(number);
      else this.heights.set(number, height);
    }
    this.numbers = [...this.heights.keys()].sort((one, other) => one - other);
    let sum = 0;
    this.sums = this.numbers.map((number) => (sum += this.heights.get(number)! - this.rowHeight));
  }

  forget(): void {
    this.heights.clear();
    this.note([]);
  }

  /** Drop rows before this one; they do not come back. */
  forgetBefore(first: number): void {
    if (this.numbers.length === 0 || this.numbers[0]! >= first) return;
    for (const number of this.numbers) if (number < first) this.heights.delete(number);
    this.note([]);
  }

  /** Offset of a row's top, with row 0 at 0. */
  top(number: number): number {
    const place = this.placeOf(number);
    return number * this.rowHeight + (place > 0 ? this.sums[place - 1]! : 0);
  }

  /** The row at an offset, between `first` and `end` (exclusive). */
  at(y: number, first: number, end: number): number {
    let [low, high] = [first, Math.max(first, end - 1)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.top(middle) <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Number of stored rows before that row. */
  private placeOf(number: number): number {
    let [low, high] = [0, this.numbers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.numbers[middle]! < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
