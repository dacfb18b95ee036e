/** Nanosecond timestamps, which exceed a number's precision. */

const TIME = /^(.*?)(?:\.(\d{1,9}))?Z$/;

/** Nanoseconds since `begin`, both in API format. */
export function nanosAfter(time: string, begin: string): number {
  const [seconds, nanos] = parts(time);
  const [beginSeconds, beginNanos] = parts(begin);
  return (seconds - beginSeconds) * 1e9 + (nanos - beginNanos);
}

function parts(time: string): [number, number] {
  const [, whole = time, fraction = ""] = TIME.exec(time) ?? [];
  return [Date.parse(`${whole}Z`) / 1000, Number(fraction.padEnd(9, "0"))];
}

/** Parse JSON, keeping nanosecond timestamps as text, as in OTLP. */
export function parseExact(json: string): unknown {
  return JSON.parse(json.replace(/("\w*_unix_nano":)(-?\d+)/g, '$1"$2"'));
}
