/** Questions to the node. Every one can be given up, and says in a sentence why it failed. */

import { busy } from "./busy.svelte";
import { ROOT } from "../router/router.svelte";
import { token } from "./token.svelte";

/** What a question takes: lists are repeated, what is null or empty is left out. */
export type QueryParams = Record<
  string,
  string | number | boolean | readonly string[] | null | undefined
>;

export class ApiError extends Error {
  constructor(
    /** One word for programs, as docs/api.md lists them; `unreachable` when nobody answered. */
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

/** Any question, answered in any form; failures are `ApiError`. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.value) headers.set("authorization", `Bearer ${token.value}`);
  let response: Response;
  const end = busy.begin();
  try {
    response = await fetch(new URL(path, ROOT), { ...init, headers, redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError("unreachable", "The node does not response. Is it still running?");
  } finally {
    end();
  }
  if (response.ok) return response;
  if (response.status === 401) token.require();
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

/** Was it given up by ourselves? Then there is nothing to say about it. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What to tell people of anything that was thrown. */
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
      `The response was ${response.status}: ${text.slice(0, 200)}`,
    );
  }
}
