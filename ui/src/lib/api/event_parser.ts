/** Parser of server-sent events. */

export interface ServerEvent {
  /** Empty for events without a name. */
  readonly name: string;
  readonly data: string;
}

/** Parses a stream in chunks of any length. */
export class EventParser {
  lastId = "";
  private rest = "";
  private name = "";
  private data: string[] = [];

  feed(text: string): ServerEvent[] {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop()!;
    const events: ServerEvent[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.data.length) events.push({ name: this.name, data: this.data.join("\n") });
        this.name = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") this.data.push(value);
      else if (field === "event") this.name = value;
      else if (field === "id") this.lastId = value;
    }
    return events;
  }
}
