/**
 * Colours of services: a function of the name alone, so they are the same in every browser and on
 * every screen. Services can share a colour; lines of one chart that do are told apart by dashes.
 */

/** Shades of each colour of a palette: as it is, darker, lighter. */
const SHADES = [
  ["#000000", 0],
  ["#000000", 0.32],
  ["#ffffff", 0.35],
] as const;
/** Chosen so that services of common demos differ. */
const SEED = 4704;

/** Number of the colour of a service, of so many in a palette with its shades. */
export function colorNumber(service: string, paletteSize: number): number {
  return hashed(service) % (paletteSize * SHADES.length);
}

/** A colour of a palette, or a shade of it. */
export function colorOf(palette: readonly string[], number: number): string {
  const [toward, share] = SHADES[Math.floor(number / palette.length)]!;
  return mixed(palette[number % palette.length]!, toward, share);
}

const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

/**
 * Dash patterns of lines, by their services: solid, unless a service that comes before in the
 * alphabet has the same colour.
 */
export function dashesOf(services: readonly string[], paletteSize: number): number[][] {
  const byColor = new Map<number, string[]>();
  for (const service of [...new Set(services)].sort()) {
    const number = colorNumber(service, paletteSize);
    byColor.set(number, [...(byColor.get(number) ?? []), service]);
  }
  return services.map((service) => {
    const same = byColor.get(colorNumber(service, paletteSize))!;
    return DASHES[same.indexOf(service) % DASHES.length]!;
  });
}

function mixed(color: string, toward: string, share: number): string {
  const parts = [1, 3, 5].map((at) => {
    const [one, other] = [color, toward].map((each) => parseInt(each.slice(at, at + 2), 16));
    const value = Math.round(one! * (1 - share) + other! * share);
    return value.toString(16).padStart(2, "0");
  });
  return `#${parts.join("")}`;
}

/** FNV-1a, mixed once more because names are short. */
function hashed(text: string): number {
  let hash = SEED;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (hash ^ (hash >>> 16)) >>> 0;
}
