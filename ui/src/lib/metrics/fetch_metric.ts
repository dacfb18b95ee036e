/** Asking for one metric over time. */

import type { SeriesAnswer } from "../api/types.gen";
import { get } from "../api/client";
import {
  type Drawn,
  drawn,
  type MetricAsked,
  parametersOf,
  secondsOf,
  typicalDistanceS,
} from "./metric";
import { type Stretch, stepOf } from "../time/range";

/** About so many steps fill the time. */
export const STEPS = 120;

/** Ask for all aggregates at once. Where points come seldom, steps are as long as they need. */
export async function askMetric(
  asked: MetricAsked,
  stretch: Stretch,
  signal: AbortSignal,
): Promise<Drawn> {
  const fixedS = secondsOf(asked.step);
  const firstS = fixedS ?? stepOf(stretch, STEPS);
  const answers = await askAll(asked, stretch, firstS, signal);
  const apartS = typicalDistanceS(answers.flatMap((answer) => answer.series));
  if (fixedS !== null || apartS === null || apartS <= firstS) {
    return drawn(asked, answers, stretch, firstS);
  }
  // A step that is shorter than the time between points would show peaks that are none.
  const secondS = stepOf({ sinceMs: 0, untilMs: apartS * 1000 }, 1);
  return drawn(asked, await askAll(asked, stretch, secondS, signal), stretch, secondS);
}

function askAll(asked: MetricAsked, stretch: Stretch, stepS: number, signal: AbortSignal) {
  return Promise.all(
    asked.aggregates.map((aggregate) =>
      get<SeriesAnswer>(
        "api/v1/metrics/query",
        parametersOf(asked, aggregate, stretch, stepS),
        signal,
      ),
    ),
  );
}
