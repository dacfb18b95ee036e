/** Parses log records. */

import type { LogRow } from "../../../lib/api/types.gen";

/** Nanoseconds exceed the precision of a number; they are kept as text. */
export type LogRecord = Omit<LogRow, Nanos> & Record<Nanos, string>;
type Nanos = "time_unix_nano" | "observed_time_unix_nano";

/** Matches numbers after these names, but not inside strings, where the quotes would be escaped. */
const NANOS = /"(time_unix_nano|observed_time_unix_nano)":(-?\d+)/g;

export function parseRecord<T>(text: string): T {
  return JSON.parse(text.replace(NANOS, '"$1":"$2"')) as T;
}

/** A record as JSON. */
export function jsonOf(record: LogRecord): string {
  const { place: _place, cursor: _cursor, ...rest } = record;
  const text = JSON.stringify(rest, null, 2);
  return text.replace(/^( {2}"(?:observed_)?time_unix_nano": )"(-?\d+)"/gm, "$1$2");
}

/** A record as one line of a terminal. */
export function lineOf(record: LogRecord): string {
  return `${record.time} ${record.severity} ${record.service_name}: ${record.body ?? ""}`;
}
