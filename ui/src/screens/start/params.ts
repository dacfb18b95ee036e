import { choice, codec, flag } from "../../lib/router/codec";

export const LANGUAGES = ["python", "node", "java", "go", "collector", "shell"] as const;
export type Language = (typeof LANGUAGES)[number];
export const TRANSPORTS = ["http", "grpc"] as const;
export type Transport = (typeof TRANSPORTS)[number];

export const params = codec({
  /** Language and transport of the setup guide. */
  language: choice(LANGUAGES, "python"),
  by: choice(TRANSPORTS, "http"),
  /** Show the setup guide although data has arrived. */
  settings: flag(),
});
