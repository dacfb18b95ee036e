/** Log records, made of the text of an answer. */

import type { LogRow } from "../../../lib/api/types.gen";

/** Nanoseconds are more than a number can hold exactly; here they are texts. */
export type LogRecord = Omit<LogRow, Nanos> & Record<Nanos, string>;
type Nanos = "time_unix_nano" | "observed_time_unix_nano";

/**
 * Numbers after these names, never such in a text: there the quotes would have a backslash before
 * them.
 */
const NANOS = /"(time_unix_nano|observed_time_unix_nano)":(-?\d+)/g;

export function parseRecord<T>(text: string): T {
  return JSON.parse(text.replace(NANOS, '"$1":"$2"')) as T;
}

/** All of a record as JSON. */
export function jsonOf(record: LogRecord): string {
  const { place: _place, cursor: _cursor, ...rest } = record;
  const text = JSON.stringify(rest, null, 2);
  return text.replace(/^( {2}"(?:observed_)?time_unix_nano": )"(-?\d+)"/gm, "$1$2");
}

/** A record as a terminal would show it. */
export function lineOf(record: LogRecord): string {
  return `${record.time} ${record.severity} ${record.service_name}: ${record.body ?? ""}`;
}
