/** Cell values as text. */

import { type DataType, DateUnit, TimeUnit, Type } from "@uwdata/flechette";

import { jsonText } from "../../../lib/format/json";

/** How a column is displayed and sorted. */
export type CellKind = "number" | "time" | "text" | "truth" | "bytes" | "nested";

const NUMBERS: ReadonlySet<number> = new Set([Type.Int, Type.Float, Type.Decimal]);
const TEXTS: ReadonlySet<number> = new Set([Type.Utf8, Type.LargeUtf8, Type.Utf8View]);
const BINARIES: ReadonlySet<number> = new Set([
  Type.Binary,
  Type.LargeBinary,
  Type.BinaryView,
  Type.FixedSizeBinary,
]);
const LISTS: ReadonlySet<number> = new Set([
  Type.List,
  Type.LargeList,
  Type.FixedSizeList,
  Type.ListView,
  Type.LargeListView,
]);

/** The value type of a dictionary. */
function bare(type: DataType): DataType {
  return type.typeId === Type.Dictionary ? bare(type.dictionary) : type;
}

export function kindOf(dataType: DataType): CellKind {
  const { typeId } = bare(dataType);
  if (NUMBERS.has(typeId)) return "number";
  if (typeId === Type.Timestamp || typeId === Type.Date) return "time";
  if (typeId === Type.Bool) return "truth";
  if (BINARIES.has(typeId)) return "bytes";
  if (LISTS.has(typeId) || typeId === Type.Struct || typeId === Type.Map) return "nested";
  return "text";
}

/** Display name. */
export function typeName(dataType: DataType): string {
  const type = bare(dataType);
  switch (type.typeId) {
    case Type.Int:
      return `${type.signed ? "" : "u"}int${type.bitWidth}`;
    case Type.Float:
      return ["half", "float", "double"][type.precision] ?? "float";
    case Type.Decimal:
      return `decimal(${type.precision},${type.scale})`;
    case Type.Timestamp:
      return `timestamp(${UNITS[type.unit]?.name ?? ""})`;
    case Type.Date:
      return "date";
    case Type.Bool:
      return "boolean";
    case Type.Null:
      return "null";
    case Type.Map:
      return "map";
    case Type.Struct:
      return "struct";
    case Type.Time:
      return "time";
    case Type.Duration:
      return "duration";
    case Type.Interval:
      return "interval";
  }
  if (TEXTS.has(type.typeId)) return "text";
  if (BINARIES.has(type.typeId)) return "binary";
  if (LISTS.has(type.typeId)) return "list";
  return "other";
}

interface Unit {
  readonly name: string;
  readonly perSecond: bigint;
  readonly digits: number;
}

const UNITS: Readonly<Record<number, Unit>> = {
  [TimeUnit.SECOND]: { name: "s", perSecond: 1n, digits: 0 },
  [TimeUnit.MILLISECOND]: { name: "ms", perSecond: 1000n, digits: 3 },
  [TimeUnit.MICROSECOND]: { name: "µs", perSecond: 1_000_000n, digits: 6 },
  [TimeUnit.NANOSECOND]: { name: "ns", perSecond: 1_000_000_000n, digits: 9 },
};
const SECONDS_MAX = 8_640_000_000_000n;
/** JavaScript dates end here. */

/** A timestamp in RFC 3339 with all digits; out of range, the plain number. */
export function exactTime(value: bigint, unit: number, hasZone: boolean): string {
  const { perSecond, digits, name } = UNITS[unit] ?? UNITS[TimeUnit.SECOND]!;
  const part = ((value % perSecond) + perSecond) % perSecond;
  const seconds = (value - part) / perSecond;
  if (seconds > SECONDS_MAX || seconds < -SECONDS_MAX) return `${value} ${name}`;
  const whole = new Date(Number(seconds) * 1000).toISOString().replace(/\.\d+Z$/, "");
  const rest = digits ? `.${String(part).padStart(digits, "0")}` : "";
  return `${whole}${rest}${hasZone ? "Z" : ""}`;
}

/** A scaled integer as a decimal. */
export function decimalText(value: bigint, scale: number): string {
  if (scale <= 0) return String(value * 10n ** BigInt(-scale));
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, "0");
  const whole = digits.slice(0, -scale);
  return `${value < 0n ? "-" : ""}${whole}.${digits.slice(-scale)}`;
}

/** A value with all digits, as copied and shown in full. Null is empty. */
export function exactText(value: unknown, dataType: DataType): string {
  if (value === null || value === undefined) return "";
  const type = bare(dataType);
  switch (type.typeId) {
    case Type.Timestamp:
      return exactTime(BigInt(value as bigint), type.unit, Boolean(type.timezone));
    case Type.Date:
      return dateText(Number(value as number), type.unit);
    case Type.Decimal:
      return decimalText(BigInt(value as bigint), type.scale);
    case Type.Time:
      return exactTime(BigInt(value as bigint), type.unit, false).slice(11);
    case Type.Duration:
      return `${String(value)} ${UNITS[type.unit]?.name ?? ""}`;
    case Type.Interval:
      return intervalText(value);
  }
  if (value instanceof Uint8Array) return `0x${hex(value)}`;
  if (kindOf(type) === "nested") return jsonText(plain(value, type));
  return String(value);
}

function dateText(ms: number, unit: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  return unit === DateUnit.DAY ? date.toISOString().slice(0, 10) : date.toISOString();
}

function intervalText(value: unknown): string {
  if (typeof value === "number") return `${value} months`;
  const numbers = Array.from(value as ArrayLike<number>);
  const names = numbers.length === 3 ? ["months", "days", "ns"] : ["days", "ms"];
  const shown = numbers.flatMap((number, i) => (number ? [`${number} ${names[i]}`] : []));
  return shown.join(" ") || "0 s";
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A nested value as JSON; 64-bit integers stay `bigint`. */
export function plain(value: unknown, dataType: DataType): unknown {
  if (value === null || value === undefined) return null;
  const type = bare(dataType);
  switch (type.typeId) {
    case Type.Map: {
      const [key, item] =
        type.children[0]?.type.typeId === Type.Struct ? type.children[0].type.children : [];
      return fromPairs(
        (value as [unknown, unknown][]).map(([k, v]) => [
          key ? exactText(k, key.type) : String(k),
          item ? plain(v, item.type) : v,
        ]),
      );
    }
    case Type.Struct:
      return fromPairs(
        type.children.map((child) => [
          child.name,
          plain((value as Record<string, unknown>)[child.name], child.type),
        ]),
      );
  }
  if (LISTS.has(type.typeId)) {
    const inner = (type as { children: readonly { type: DataType }[] }).children[0]?.type;
    return Array.from(value as Iterable<unknown>, (each) => (inner ? plain(each, inner) : each));
  }
  if (kindOf(type) === "number" && type.typeId !== Type.Decimal) return value;
  return typeof value === "boolean" ? value : exactText(value, type);
}

/** Keys such as `__proto__` are ordinary keys. */
function fromPairs(pairs: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const found = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of pairs) found[name] = value;
  return found;
}

/** Number for charts and sorting; null if it is none. Times are in milliseconds. */
export function numberOf(value: unknown, dataType: DataType): number | null {
  if (value === null || value === undefined) return null;
  const type = bare(dataType);
  switch (type.typeId) {
    case Type.Timestamp:
      return (Number(value as bigint) / Number((UNITS[type.unit] ?? UNITS[0])!.perSecond)) * 1000;
    case Type.Decimal:
      return Number(value as bigint) / 10 ** type.scale;
  }
  if (typeof value === "boolean") return Number(value);
  const number = typeof value === "number" || typeof value === "bigint" ? Number(value) : NaN;
  return Number.isFinite(number) ? number : null;
}

/** Sorted row indices. The sort is stable, and nulls come last. */
export function sorted(
  values: readonly unknown[],
  dataType: DataType,
  isDescending: boolean,
): Uint32Array {
  const isText = ["text", "bytes", "nested"].includes(kindOf(dataType));
  const keys = isText
    ? values.map((value) => (value === null ? null : exactText(value, dataType)))
    : (values as (number | bigint | boolean | null)[]);
  const order = Uint32Array.from(values, (_, i) => i);
  const sign = isDescending ? -1 : 1;
  return order.sort((a, b) => {
    const [one, other] = [keys[a] ?? null, keys[b] ?? null];
    if (one === null || other === null)
      return Number(one === null) - Number(other === null) || a - b;
    return one < other ? -sign : one > other ? sign : a - b;
  });
}
