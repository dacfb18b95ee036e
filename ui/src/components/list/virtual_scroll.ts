/**
 * Scrolling farther than a browser can: elements end at some millions of pixels, lists do not.
 *
 * A turn of the wheel moves what is seen by as many pixels, as ever. A jump, as with the scrollbar,
 * goes to the same share of the whole. In between both have to be brought together again: what is
 * seen stays, and the scrollbar is moved to where it belongs.
 */

/** Firefox ends at 17.9 million pixels, others later. */
export const PIXELS_MAX = 8_000_000;

export interface ScrollPosition {
  /** Where one is in the whole. */
  readonly offset: number;
  /** Where the scrollbar is. */
  readonly scrollTop: number;
}

export interface Sizes {
  /** How high all of it is, and how high the part that is seen. */
  readonly whole: number;
  readonly view: number;
}

/** How high the element is. */
export function elementHeight({ whole }: Sizes): number {
  return Math.min(whole, PIXELS_MAX);
}

/** The scrollbar was moved to `scrollTop`. */
export function afterScroll(
  position: ScrollPosition,
  scrollTop: number,
  sizes: Sizes,
): ScrollPosition {
  const step = scrollTop - position.scrollTop;
  if (sizes.whole <= PIXELS_MAX) return { offset: scrollTop, scrollTop };
  const [scrollTopMax, offsetMax] = [elementHeight(sizes) - sizes.view, sizes.whole - sizes.view];
  const isJump = Math.abs(step) > 2 * sizes.view;
  const offset = isJump ? (scrollTop / scrollTopMax) * offsetMax : position.offset + step;
  // At an end there is nothing more to scroll to.
  if (scrollTop <= 0 && isJump) return { offset: 0, scrollTop };
  if (scrollTop >= scrollTopMax && isJump) return { offset: offsetMax, scrollTop };
  return { offset: clamp(offset, offsetMax), scrollTop };
}

/** Where the scrollbar belongs for that position in the whole. */
export function alignedTo(offset: number, sizes: Sizes): ScrollPosition {
  const offsetMax = Math.max(0, sizes.whole - sizes.view);
  const position = clamp(offset, offsetMax);
  if (sizes.whole <= PIXELS_MAX) return { offset: position, scrollTop: position };
  const scrollTopMax = elementHeight(sizes) - sizes.view;
  const share = Math.round((position / offsetMax) * scrollTopMax);
  // By an end it has as offset to go as what is seen, so that both arrive together.
  const least = Math.min(position, 2 * sizes.view);
  const most = scrollTopMax - Math.min(offsetMax - position, 2 * sizes.view);
  return { offset: position, scrollTop: Math.max(least, Math.min(most, share)) };
}

/** Is the scrollbar at an end, and what is seen is not? Then it cannot be scrolled on. */
export function isStuck({ offset, scrollTop }: ScrollPosition, sizes: Sizes): boolean {
  if (sizes.whole <= PIXELS_MAX) return false;
  const [scrollTopMax, offsetMax] = [elementHeight(sizes) - sizes.view, sizes.whole - sizes.view];
  return (scrollTop <= 0 && offset > 0) || (scrollTop >= scrollTopMax - 1 && offset < offsetMax);
}

function clamp(value: number, max: number): number {
  return Math.max(0, Math.min(max, value));
}
