/** Saved views and queries: files on the node, shared by all its users. */

import { ApiError, get, messageOf, queryString, send } from "../api/client";
import type {
  QueriesAnswer,
  SavedQuery,
  SavedView,
  StoredQuery,
  StoredView,
  ViewsAnswer,
} from "../api/types.gen";
import { unusedName } from "./file_name";

export interface SavedFile<T> {
  readonly name: string;
  readonly etag: string;
  /** Null if the file is broken. */
  readonly content: T | null;
  readonly error: string;
}

interface Api<T> {
  readonly path: string;
  /** Name of a file whose title has no usable characters. */
  readonly fallback: string;
  list(signal?: AbortSignal): Promise<SavedFile<T>[]>;
  /** Convert the response to a change. */
  parse(answer: unknown): SavedFile<T>;
}

/** The files of one kind, as last loaded. */
export class SavedFiles<T extends { readonly title: string }> {
  all = $state.raw<readonly SavedFile<T>[]>([]);
  isLoaded = $state(false);
  error = $state("");
  /** The last deleted file, to bring it back. */
  deleted = $state.raw<SavedFile<T> | null>(null);

  constructor(private readonly api: Api<T>) {}

  /** Load the list. Throws no error, but shows it. */
  async load(signal?: AbortSignal): Promise<void> {
    try {
      const found = await this.api.list(signal);
      this.all = found.sort((one, other) => titleOf(one).localeCompare(titleOf(other)));
      this.error = "";
      this.isLoaded = true;
    } catch (error) {
      if (!signal?.aborted) this.error = messageOf(error);
    }
  }

  /** The file with that title, which saving under the title replaces. */
  titled(title: string): SavedFile<T> | undefined {
    return this.all.find(({ content }) => content?.title === title.trim());
  }

  /** Save under the title of the content. Whether it is done. */
  save(content: T): Promise<boolean> {
    return this.change(async () => {
      const old = this.titled(content.title);
      const taken = this.all.map(({ name }) => name);
      const name = old?.name ?? unusedName(content.title, taken, this.api.fallback);
      await this.put(name, content, old?.etag ?? null);
    });
  }

  rename(file: SavedFile<T>, title: string): Promise<boolean> {
    return this.change(async () => {
      const other = this.titled(title);
      if (other && other.name !== file.name) {
        throw new Error(`"${title}" already exists. Choose another name.`);
      }
      if (file.content) await this.put(file.name, { ...file.content, title }, file.etag);
    });
  }

  remove(file: SavedFile<T>): Promise<boolean> {
    return this.change(async () => {
      await send("DELETE", this.pathOf(file.name, file.etag));
      this.deleted = file.content && file;
    });
  }

  /** Store the last deleted file again. */
  restore(): Promise<boolean> {
    return this.change(async () => {
      if (this.deleted?.content) await this.put(this.deleted.name, this.deleted.content, null);
      this.deleted = null;
    });
  }

  /** Read one file. */
  async read(name: string, signal?: AbortSignal): Promise<T> {
    const file = this.api.parse(await get(this.pathOf(name), {}, signal));
    if (!file.content) throw new Error(file.error || "The file cannot be read.");
    return file.content;
  }

  private put(name: string, content: T, etag: string | null): Promise<unknown> {
    return send("PUT", this.pathOf(name, etag), content);
  }

  private pathOf(name: string, etag: string | null = null): string {
    return `${this.api.path}/${encodeURIComponent(name)}${queryString({ etag })}`;
  }

  private async change(work: () => Promise<void>): Promise<boolean> {
    let failure = "";
    try {
      await work();
    } catch (error) {
      const isStale = error instanceof ApiError && error.kind === "conflict";
      failure = messageOf(error) + (isStale ? " The list was loaded again." : "");
    }
    await this.load();
    if (failure) this.error = failure;
    return !failure;
  }
}

export function titleOf<T extends { readonly title: string }>(file: SavedFile<T>): string {
  return file.content?.title ?? file.name;
}

function viewFile({ name, etag, view, error }: StoredView): SavedFile<SavedView> {
  return { name, etag, content: view, error: error ?? "" };
}

function queryFile({ name, etag, query, error }: StoredQuery): SavedFile<SavedQuery> {
  return { name, etag, content: query, error: error ?? "" };
}

const VIEWS = "api/v1/views";
export const savedViews = new SavedFiles<SavedView>({
  path: VIEWS,
  fallback: "view",
  list: async (signal) => (await get<ViewsAnswer>(VIEWS, {}, signal)).views.map(viewFile),
  parse: (answer) => viewFile(answer as StoredView),
});

const QUERIES = "api/v1/queries";
export const savedQueries = new SavedFiles<SavedQuery>({
  path: QUERIES,
  fallback: "query",
  list: async (signal) => (await get<QueriesAnswer>(QUERIES, {}, signal)).queries.map(queryFile),
  parse: (answer) => queryFile(answer as StoredQuery),
});
