/** Deployments in the time range of the charts, loaded once for all of them. */

import type { Deployment, DeploymentsAnswer } from "../api/types.gen";
import { get, isAborted } from "../api/client";
import { escapeText, truncate } from "../format/escape";
import * as format from "../format/format";
import { rangeParams, type TimeRange } from "../time/range";

const NAME_MAX = 60;
/** A range that moves by less than this share of its length does not load again. */
const PARTS = 60;

class Deployments {
  private all = $state.raw<readonly Deployment[]>([]);
  private loadedKey = "";
  private abort = new AbortController();

  /** Load the deployments of a range, unless they are loaded. */
  want(range: TimeRange): void {
    const part = Math.max(1, (range.untilMs - range.sinceMs) / PARTS);
    const key = `${Math.round(range.sinceMs / part)} ${Math.round(range.untilMs / part)}`;
    if (key === this.loadedKey) return;
    this.loadedKey = key;
    this.abort.abort();
    this.abort = new AbortController();
    get<DeploymentsAnswer>("api/v1/deployments", rangeParams(range), this.abort.signal).then(
      ({ deployments }) => (this.all = deployments),
      (error: unknown) => {
        // A chart without markers is still right; what fails is said where its values are loaded.
        if (!isAborted(error)) this.all = [];
      },
    );
  }

  /** Those in a range, of some services or of all. */
  within(range: TimeRange, services: readonly string[] | null): Deployment[] {
    return this.all.filter(({ time, service }) => {
      const ms = Date.parse(time);
      const isInside = ms >= range.sinceMs && ms < range.untilMs;
      return isInside && (services === null || services.includes(service));
    });
  }
}

export const deployments = new Deployments();

/** "checkout 1.8.0 deployed at 19:05:23, after 1.7.4" */
export function describeDeployment(deployment: Deployment): string {
  const [service, version, before] = [
    deployment.service,
    deployment.version,
    deployment.previous_version,
  ].map((text) => escapeText(truncate(text, NAME_MAX)));
  return `${service} ${version} deployed at ${format.clock(deployment.time, 0)}, after ${before}`;
}
