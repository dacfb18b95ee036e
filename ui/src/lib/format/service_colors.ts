/**
 * Assigns colours to services: stable across screens and reloads, and without repetition until all
 * colours are taken.
 */

const STORED_MAX = 200;

export class ServiceColors {
  private readonly colors = new Map<string, number>();

  constructor(
    private readonly count: number,
    stored: readonly (readonly [string, number])[] = [],
  ) {
    this.learn(stored);
  }

  has(service: string): boolean {
    return this.colors.has(service);
  }

  /** Take over what another tab has assigned. Colours that are in use here do not change. */
  learn(stored: readonly (readonly [string, number])[]): void {
    for (const [service, color] of stored.slice(0, STORED_MAX)) {
      const isColor = Number.isInteger(color) && color >= 0 && color < this.count;
      if (isColor && !this.colors.has(service)) this.colors.set(service, color);
    }
  }

  /** The colour of a service. A new one gets one of the least used. */
  of(service: string): { color: number; isNew: boolean } {
    const known = this.colors.get(service);
    if (known !== undefined) return { color: known, isNew: false };
    const taken = new Array<number>(this.count).fill(0);
    for (const color of this.colors.values()) taken[color]! += 1;
    const least = Math.min(...taken);
    let color = hashed(service) % this.count;
    while (taken[color] !== least) color = (color + 1) % this.count;
    this.colors.set(service, color);
    return { color, isNew: true };
  }

  /** For storage, newest last. */
  get all(): [string, number][] {
    return [...this.colors].slice(-STORED_MAX);
  }
}

function hashed(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  return hash >>> 0;
}
