import { choice, codec } from "../../lib/router/codec";

export const DETAILS = [
  "partitions",
  "subscribers",
  "groups",
  "tables",
  "commits",
  "refusals",
] as const;

/** Table shown below the diagram. */
export const params = codec({ show: choice(DETAILS, "partitions") });
