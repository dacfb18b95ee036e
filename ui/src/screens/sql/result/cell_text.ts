/** Cell text: one line, truncated, in the displayed time zone. */

import { type DataType, Type } from "@uwdata/flechette";

import * as format from "../../../lib/format/format";
import { truncate, escapeText } from "../../../lib/format/escape";
import { exactText, type CellKind } from "./cells";

const LETTERS_MAX = 400;

export interface CellText {
  readonly text: string;
  /** Tooltip with the full text. */
  readonly title: string | undefined;
}

export function cellText(value: unknown, type: DataType, kind: CellKind): CellText {
  if (value === null || value === undefined) return { text: "null", title: undefined };
  const exact = exactText(value, type);
  if (kind === "time" && exact.endsWith("Z") && type.typeId === Type.Timestamp) {
    return { text: format.moment(exact), title: exact };
  }
  const text = escapeText(truncate(exact, LETTERS_MAX));
  return { text, title: text.length > 40 ? text : undefined };
}
