/** Cardinality per service, as a lower bound from a sample of rows. */

import type { SqlAnswer } from "../../lib/api/types.gen";
import { send } from "../../lib/api/client";
import { rangeParams, type TimeRange } from "../../lib/time/range";

const SERVICES_MAX = 10_000;
/** Rows sampled per table: enough to find most values, and fast. */
export const ROWS_MAX = 100_000;

export interface Cardinality {
  /** Distinct metric series: name, attributes, instance. Estimated. */
  readonly series: ReadonlyMap<string, number>;
  /** Distinct attribute names of spans and logs. */
  readonly spanKeys: ReadonlyMap<string, number>;
  readonly logKeys: ReadonlyMap<string, number>;
}

export async function cardinalityOf(range: TimeRange, signal: AbortSignal): Promise<Cardinality> {
  const { since, until } = rangeParams(range);
  const where = `time >= TIMESTAMP '${since}' AND time < TIMESTAMP '${until}'`;
  const some = (table: string, columns: string) =>
    `(SELECT service_name, ${columns} FROM ${table} WHERE ${where} LIMIT ${ROWS_MAX})`;
  const keys = (table: string) =>
    `SELECT service_name, count(DISTINCT key) FROM (SELECT service_name, ` +
    `unnest(map_keys(attributes)) AS key FROM ${some(table, "attributes")}) ` +
    `GROUP BY 1 LIMIT ${SERVICES_MAX}`;
  const series =
    `SELECT service_name, approx_distinct(concat_ws('|', metric_name, service_instance_id, ` +
    `array_to_string(map_keys(attributes), '|'), array_to_string(map_values(attributes), '|'))) ` +
    `FROM ${some("metrics", "metric_name, service_instance_id, attributes")} ` +
    `GROUP BY 1 LIMIT ${SERVICES_MAX}`;
  // Sequential: each may need its own worker process on the node.
  return {
    series: await counts(series, signal),
    spanKeys: await counts(keys("spans"), signal),
    logKeys: await counts(keys("logs"), signal),
  };
}

async function counts(sql: string, signal: AbortSignal): Promise<Map<string, number>> {
  const { rows } = await send<SqlAnswer>("POST", "api/v1/sql", { sql }, signal);
  return new Map(rows.map(([service, count]) => [String(service), Number(count)]));
}
