/**
 * Scrolling beyond the maximum element height of browsers.
 *
 * A turn of the wheel moves the content by the same number of pixels. A jump, as with the
 * scrollbar, goes to the same share of the content. When scrolling ends, the scrollbar is moved to
 * match the content, which stays in place.
 */

/** Firefox supports 17.9 million pixels, others more. */
export const PIXELS_MAX = 8_000_000;

export interface ScrollPosition {
  /** Offset in the content. */
  readonly offset: number;
  /** Position of the scrollbar. */
  readonly scrollTop: number;
}

export interface Sizes {
  /** Heights of the content and of the viewport. */
  readonly whole: number;
  readonly view: number;
}

/** Height of the scrolled element. */
export function elementHeight({ whole }: Sizes): number {
  return Math.min(whole, PIXELS_MAX);
}

/** Position after the scrollbar moved to `scrollTop`. */
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
  // A jump to an end goes to the end of the content.
  if (scrollTop <= 0 && isJump) return { offset: 0, scrollTop };
  if (scrollTop >= scrollTopMax && isJump) return { offset: offsetMax, scrollTop };
  return { offset: clamp(offset, offsetMax), scrollTop };
}

/** Position whose scrollbar matches an offset in the content. */
export function alignedTo(offset: number, sizes: Sizes): ScrollPosition {
  const offsetMax = Math.max(0, sizes.whole - sizes.view);
  const position = clamp(offset, offsetMax);
  if (sizes.whole <= PIXELS_MAX) return { offset: position, scrollTop: position };
  const scrollTopMax = elementHeight(sizes) - sizes.view;
  const share = Math.round((position / offsetMax) * scrollTopMax);
  // Near an end, both have the same distance left and arrive together.
  const least = Math.min(position, 2 * sizes.view);
  const most = scrollTopMax - Math.min(offsetMax - position, 2 * sizes.view);
  return { offset: position, scrollTop: Math.max(least, Math.min(most, share)) };
}

/** Whether the scrollbar is at an end but the content is not, so that scrolling is blocked. */
export function isStuck({ offset, scrollTop }: ScrollPosition, sizes: Sizes): boolean {
  if (sizes.whole <= PIXELS_MAX) return false;
  const [scrollTopMax, offsetMax] = [elementHeight(sizes) - sizes.view, sizes.whole - sizes.view];
  return (scrollTop <= 0 && offset > 0) || (scrollTop >= scrollTopMax - 1 && offset < offsetMax);
}

function clamp(value: number, max: number): number {
  return Math.max(0, Math.min(max, value));
}
