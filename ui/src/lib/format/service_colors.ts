/**
 * Which of so many colours each service has: the same on every screen and after a reload, and no
 * two have the same one before all are taken.
 */

const KEPT_MAX = 200;

export class ServicePlaces {
  private readonly places = new Map<string, number>();

  constructor(
    private readonly count: number,
    kept: readonly (readonly [string, number])[] = [],
  ) {
    for (const [service, place] of kept.slice(0, KEPT_MAX)) {
      if (Number.isInteger(place) && place >= 0 && place < count) this.places.set(service, place);
    }
  }

  /** The place of a service. One that is new gets one of those that the fewest have. */
  of(service: string): { place: number; isNew: boolean } {
    const known = this.places.get(service);
    if (known !== undefined) return { place: known, isNew: false };
    const taken = new Array<number>(this.count).fill(0);
    for (const place of this.places.values()) taken[place]! += 1;
    const least = Math.min(...taken);
    let place = hashed(service) % this.count;
    while (taken[place] !== least) place = (place + 1) % this.count;
    this.places.set(service, place);
    return { place, isNew: true };
  }

  /** To be kept, the newest last. */
  get all(): [string, number][] {
    return [...this.places].slice(-KEPT_MAX);
  }
}

function hashed(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  return hash >>> 0;
}
