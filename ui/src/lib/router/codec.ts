/**
 * Converts the state of a screen to query parameters and back.
 *
 * Parameters with their default value are left out of the address. Parsing never fails: invalid
 * values become the default.
 */

export interface Field<T> {
  readonly empty: T;
  read(texts: readonly string[]): T;
  write(value: T): string[];
}

export type Shape = Record<string, Field<any>>; // eslint-disable-line @typescript-eslint/no-explicit-any

export type StateOf<S extends Shape> = {
  [K in keyof S]: S[K] extends Field<infer T> ? T : never;
};

export interface Codec<S extends Shape> {
  readonly shape: S;
  readonly empty: StateOf<S>;
  read(query: URLSearchParams): StateOf<S>;
  write(state: StateOf<S>): URLSearchParams;
}

export function codec<S extends Shape>(shape: S): Codec<S> {
  const names = Object.keys(shape) as (keyof S & string)[];
  const pairs = (value: (name: keyof S & string) => unknown) =>
    Object.fromEntries(names.map((name) => [name, value(name)])) as StateOf<S>;
  return {
    shape,
    empty: pairs((name) => shape[name]!.empty),
    read: (query) => pairs((name) => shape[name]!.read(query.getAll(name))),
    write(state) {
      const query = new URLSearchParams();
      for (const name of names) {
        const field = shape[name]!;
        const written = field.write(state[name]);
        if (same(written, field.write(field.empty))) continue;
        // An emptied list differs from the default list.
        for (const text of written.length ? written : [""]) query.append(name, text);
      }
      return query;
    },
  };
}

/** Any text. */
export function text(empty = ""): Field<string> {
  return { empty, read: (texts) => texts[0] ?? empty, write: (value) => [value] };
}

/** One of a fixed set of words. */
export function choice<const T extends string>(words: readonly T[], empty: T): Field<T> {
  return {
    empty,
    read: (texts) => words.find((word) => word === texts[0]) ?? empty,
    write: (value) => [value],
  };
}

/** A boolean. */
export function flag(empty = false): Field<boolean> {
  return {
    empty,
    read: ([text]) => (text === "1" ? true : text === "0" ? false : empty),
    write: (value) => [value ? "1" : "0"],
  };
}

/** A finite number or null. */
export function number(empty: number | null = null): Field<number | null> {
  return {
    empty,
    read([text]) {
      if (text === undefined) return empty;
      if (text === "") return null;
      const value = Number(text);
      return Number.isFinite(value) ? value : empty;
    },
    write: (value) => [value === null ? "" : String(value)],
  };
}

/** A list of non-empty texts. */
export function texts(empty: readonly string[] = []): Field<readonly string[]> {
  return {
    empty,
    read: (given) => (given.length ? given.filter((text) => text !== "") : empty),
    write: (value) => [...value],
  };
}

/** A list without duplicates, usable as keys. */
export function distinct(empty: readonly string[] = []): Field<readonly string[]> {
  const { read, write } = texts(empty);
  return { empty, read: (given) => [...new Set(read(given))], write };
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, i) => text === other[i]);
}
