/** Attributes of a span, grouped by origin. */

import type { SpanDetail } from "./detail";

export interface AttributeGroup {
  readonly title: string;
  /** Key prefix of the API. */
  readonly prefix: string;
  readonly pairs: readonly (readonly [key: string, value: string])[];
}

/** Non-empty groups; a filter matches keys and values. */
export function attributeGroups(span: SpanDetail, filter: string): AttributeGroup[] {
  const scope: Record<string, string> = {};
  if (span.scope_name) scope["scope_name"] = span.scope_name;
  if (span.scope_version) scope["scope_version"] = span.scope_version;
  if (span.trace_state) scope["trace_state"] = span.trace_state;
  const groups = [
    group("Span", "", span.attributes),
    group("Resource: service, host, process", "resource.", span.resource_attributes),
    group("Scope", "scope.", span.scope_attributes),
    group("Instrumentation", "", scope),
  ];
  const text = filter.trim().toLowerCase();
  return groups
    .map((each) => ({ ...each, pairs: each.pairs.filter(([key, value]) => has(key, value, text)) }))
    .filter((each) => each.pairs.length > 0);
}

function group(
  title: string,
  prefix: string,
  attributes: Readonly<Record<string, string>>,
): AttributeGroup {
  const pairs = Object.entries(attributes).sort(([one], [other]) => (one < other ? -1 : 1));
  return { title, prefix, pairs };
}

function has(key: string, value: string, text: string): boolean {
  return `${key}=${value}`.toLowerCase().includes(text);
}
