/** Metadata of an Arrow stream. */

export interface StreamMetadata {
  /** Of the last message that has metadata. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Whether the stream has an end marker. */
  readonly hasEnd: boolean;
}

const LENGTH_BYTES = 4;
const CONTINUES = -1;
/** Field numbers of an Arrow message. */
const BODY_LENGTH = 3;
const METADATA = 4;

/**
 * Read the metadata that the Arrow library drops. Each message is a length, a flatbuffer and a
 * body; a length of zero is the end.
 */
export function readMetadata(stream: Uint8Array): StreamMetadata {
  const view = new DataView(stream.buffer, stream.byteOffset, stream.byteLength);
  let metadata: ReadonlyMap<string, string> = new Map();
  let at = 0;
  while (at + LENGTH_BYTES <= view.byteLength) {
    let length = view.getInt32(at, true);
    at += LENGTH_BYTES;
    if (length === CONTINUES) {
      if (at + LENGTH_BYTES > view.byteLength) break;
      length = view.getInt32(at, true);
      at += LENGTH_BYTES;
    }
    if (length === 0) return { metadata, hasEnd: true };
    if (length < 0 || at + length > view.byteLength) break;
    const message = tableAt(view, at);
    const found = metadataOf(view, message(METADATA));
    if (found.size) metadata = found;
    const body = message(BODY_LENGTH);
    at += length + (body ? Number(view.getBigInt64(body, true)) : 0);
  }
  return { metadata, hasEnd: false };
}

/** Returns the position of a flatbuffer table's field; null if it is missing. */
function tableAt(view: DataView, at: number): (field: number) => number | null {
  const table = at + view.getUint32(at, true);
  const fields = table - view.getInt32(table, true);
  const size = view.getUint16(fields, true);
  return (field) => {
    const slot = 4 + 2 * field;
    const offset = slot < size ? view.getUint16(fields + slot, true) : 0;
    return offset ? table + offset : null;
  };
}

function metadataOf(view: DataView, at: number | null): Map<string, string> {
  const found = new Map<string, string>();
  if (at === null) return found;
  const list = at + view.getUint32(at, true);
  for (let i = 0; i < view.getUint32(list, true); i++) {
    const pair = tableAt(view, list + 4 + 4 * i);
    found.set(textAt(view, pair(0)), textAt(view, pair(1)));
  }
  return found;
}

function textAt(view: DataView, at: number | null): string {
  if (at === null) return "";
  const text = at + view.getUint32(at, true);
  const length = view.getUint32(text, true);
  return new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + text + 4, length));
}
