/** HTTP client of the node's API. Every request can be aborted; failures are `ApiError`. */

import { busy } from "./busy.svelte";
import { parsedJson } from "../format/json";
import { ROOT } from "../router/router.svelte";
import { token } from "./token.svelte";

/** Query parameters: lists are repeated; null and empty values are left out. */
export type QueryParams = Record<
  string,
  string | number | boolean | readonly string[] | null | undefined
>;

export class ApiError extends Error {
  constructor(
    /** Error kind as listed in docs/api.md; `unreachable` without a response. */
    readonly kind: string,
    message: string,
    readonly status = 0,
  ) {
    super(message);
  }
}

export async function get<T>(
  path: string,
  params: QueryParams = {},
  signal?: AbortSignal,
): Promise<T> {
  const response = await request(`${path}${queryString(params)}`, signal ? { signal } : {});
  return (await response.json()) as T;
}

/** Like `get`; integers that a number cannot hold become `bigint`. */
export async function getExact<T>(
  path: string,
  params: QueryParams = {},
  signal?: AbortSignal,
): Promise<T> {
  const response = await request(`${path}${queryString(params)}`, signal ? { signal } : {});
  return parsedJson(await response.text()) as T;
}

export async function send<T>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body: unknown = {},
  signal?: AbortSignal,
): Promise<T> {
  const response = await request(path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  return (await response.json()) as T;
}

/** Send a request. Throws `ApiError` on failure. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const sent = token.value;
  if (sent) headers.set("authorization", `Bearer ${sent}`);
  let response: Response;
  const end = busy.begin();
  try {
    response = await fetch(new URL(path, ROOT), { ...init, headers, redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError("unreachable", "The node does not respond. Is it running?");
  } finally {
    end();
  }
  if (response.ok) return response;
  if (response.status === 401) token.require(sent);
  throw await errorOf(response);
}

export function queryString(params: QueryParams): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
  }
  const text = query.toString();
  return text && `?${text}`;
}

/** Whether the request was aborted by the page; such errors are not shown. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error: { kind: string; message: string } };
    return new ApiError(error.kind, error.message, response.status);
  } catch {
    return new ApiError(
      "unreachable",
      `Unexpected response ${response.status}: ${text.slice(0, 200)}`,
    );
  }
}
