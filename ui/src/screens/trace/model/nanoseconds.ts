/** Moments to the nanosecond, which a number cannot hold. */

const TIME = /^(.*?)(?:\.(\d{1,9}))?Z$/;

/** How long after `begin` that is, in nanoseconds. Both are as the API writes them. */
export function nanosAfter(time: string, begin: string): number {
  const [seconds, nanos] = parts(time);
  const [beginSeconds, beginNanos] = parts(begin);
  return (seconds - beginSeconds) * 1e9 + (nanos - beginNanos);
}

function parts(time: string): [number, number] {
  const [, whole = time, fraction = ""] = TIME.exec(time) ?? [];
  return [Date.parse(`${whole}Z`) / 1000, Number(fraction.padEnd(9, "0"))];
}

/** JSON whose moments in nanoseconds are texts, to the last digit; as in OTLP. */
export function parseExact(json: string): unknown {
  return JSON.parse(json.replace(/("\w*_unix_nano":)(-?\d+)/g, '$1"$2"'));
}
