/**
 * Scrolling farther than a browser can: elements end at some millions of pixels, lists do not.
 *
 * A turn of the wheel moves what is seen by as many pixels, as ever. A jump, as with the scrollbar,
 * goes to the same share of the whole. In between both have to be brought together again: what is
 * seen stays, and the scrollbar is moved to where it belongs.
 */

/** Firefox ends at 17.9 million pixels, others later. */
export const PIXELS_MAX = 8_000_000;

export interface FarPlace {
  /** Where one is in the whole. */
  readonly far: number;
  /** Where the scrollbar is. */
  readonly near: number;
}

export interface Sizes {
  /** How high all of it is, and how high the part that is seen. */
  readonly whole: number;
  readonly view: number;
}

/** How high the element is. */
export function nearHeight({ whole }: Sizes): number {
  return Math.min(whole, PIXELS_MAX);
}

/** The scrollbar was moved to `near`. */
export function scrolled(place: FarPlace, near: number, sizes: Sizes): FarPlace {
  const step = near - place.near;
  if (sizes.whole <= PIXELS_MAX) return { far: near, near };
  const [nearMax, farMax] = [nearHeight(sizes) - sizes.view, sizes.whole - sizes.view];
  const isJump = Math.abs(step) > 2 * sizes.view;
  const far = isJump ? (near / nearMax) * farMax : place.far + step;
  // At an end there is nothing more to scroll to.
  if (near <= 0 && isJump) return { far: 0, near };
  if (near >= nearMax && isJump) return { far: farMax, near };
  return { far: clamp(far, farMax), near };
}

/** Where the scrollbar belongs for that place in the whole. */
export function settled(far: number, sizes: Sizes): FarPlace {
  const farMax = Math.max(0, sizes.whole - sizes.view);
  const place = clamp(far, farMax);
  if (sizes.whole <= PIXELS_MAX) return { far: place, near: place };
  const nearMax = nearHeight(sizes) - sizes.view;
  const share = Math.round((place / farMax) * nearMax);
  // By an end it has as far to go as what is seen, so that both arrive together.
  const least = Math.min(place, 2 * sizes.view);
  const most = nearMax - Math.min(farMax - place, 2 * sizes.view);
  return { far: place, near: Math.max(least, Math.min(most, share)) };
}

/** Is the scrollbar at an end, and what is seen is not? Then it cannot be scrolled on. */
export function isStuck({ far, near }: FarPlace, sizes: Sizes): boolean {
  if (sizes.whole <= PIXELS_MAX) return false;
  const [nearMax, farMax] = [nearHeight(sizes) - sizes.view, sizes.whole - sizes.view];
  return (near <= 0 && far > 0) || (near >= nearMax - 1 && far < farMax);
}

function clamp(value: number, max: number): number {
  return Math.max(0, Math.min(max, value));
}
