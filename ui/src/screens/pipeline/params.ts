import { choice, codec } from "../../lib/router/codec";

export const DETAILS = ["partitions", "subscribers", "tables", "commits", "refusals"] as const;

/** What is listed below the picture. */
export const params = codec({ show: choice(DETAILS, "partitions") });
