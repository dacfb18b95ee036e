/** Server-sent events over fetch. Unlike EventSource it sends the token and reports errors. */

import { ApiError, request, isAborted } from "./client";
import { EventParser, type ServerEvent } from "./event_parser";

const RETRY_MS = 2000;

/**
 * Receive events until the signal aborts. A lost connection is resumed at the last event and
 * reported to `onTrouble`; errors of the node are thrown. `start` is an event to resume at.
 */
export async function streamEvents(
  path: string,
  signal: AbortSignal,
  onEvents: (events: ServerEvent[]) => void,
  onTrouble: (message: string | null) => void = () => {},
  start = "",
): Promise<void> {
  let last = start;
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last) headers["last-event-id"] = last;
      const response = await request(path, { signal, headers });
      onTrouble(null);
      const parser = new EventParser();
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const events = parser.feed(value);
        last = parser.lastId || last;
        if (events.length) onEvents(events);
      }
      onTrouble("The node closed the connection. Reconnecting…");
    } catch (error) {
      if (signal.aborted || isAborted(error)) return;
      if (error instanceof ApiError && error.status !== 0 && error.status < 500) throw error;
      onTrouble("Connection lost. Reconnecting…");
    }
    await pause(RETRY_MS, signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
