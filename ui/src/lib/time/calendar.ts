/** Days of a calendar, as `YYYY-MM-DD`. They have no time zone. */

const DAY_MS = 86_400_000;
const WEEK = 7;

function msOf(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function addDays(day: string, count: number): string {
  return dayOf(msOf(day) + count * DAY_MS);
}

/** The same day of another month, or its last one. */
export function addMonths(day: string, count: number): string {
  const date = new Date(msOf(day));
  const month = date.getUTCMonth() + count;
  const last = new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate();
  return dayOf(Date.UTC(date.getUTCFullYear(), month, Math.min(date.getUTCDate(), last)));
}

/** Weeks of the month with this day, from Monday; days of other months fill the first and last. */
export function weeksOf(day: string): string[][] {
  const first = `${day.slice(0, 8)}01`;
  const weekday = (new Date(msOf(first)).getUTCDay() + WEEK - 1) % WEEK;
  const weeks: string[][] = [];
  for (let monday = addDays(first, -weekday); ; monday = addDays(monday, WEEK)) {
    if (weeks.length && monday.slice(0, 7) !== day.slice(0, 7)) return weeks;
    weeks.push(Array.from({ length: WEEK }, (_, i) => addDays(monday, i)));
  }
}

/** November 2026 */
export function monthName(day: string): string {
  return new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" }).format(
    msOf(day),
  );
}
