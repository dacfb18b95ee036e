import { choice, codec, flag } from "../../lib/router/codec";

export const LANGUAGES = ["python", "node", "java", "go", "collector", "shell"] as const;
export type Language = (typeof LANGUAGES)[number];
export const TRANSPORTS = ["http", "grpc"] as const;
export type Transport = (typeof TRANSPORTS)[number];

export const params = codec({
  /** What sends, and how. */
  language: choice(LANGUAGES, "python"),
  by: choice(TRANSPORTS, "http"),
  /** The settings, also when something has come. */
  settings: flag(),
});
