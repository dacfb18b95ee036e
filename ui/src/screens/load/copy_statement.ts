/** The COPY INTO statement that the form describes. */

export const ON_ERROR = ["ABORT", "CONTINUE", "SKIP_FILE"] as const;
export const FORMATS = ["NDJSON", "JSON", "CSV", "PARQUET", "ORC", "AVRO", "TEXT"] as const;
export const TYPES = [
  "BOOLEAN",
  "INT",
  "BIGINT",
  "FLOAT",
  "DOUBLE",
  "DECIMAL(18, 2)",
  "DECIMAL(38, 9)",
  "VARCHAR",
  "DATE",
  "TIMESTAMP",
  "TIMESTAMPTZ",
  "BINARY",
  "UUID",
  "JSON",
] as const;

export interface ChosenColumn {
  readonly name: string;
  /** Declared type; empty means inferred. */
  readonly type: string;
}

export interface CopyForm {
  readonly table: string;
  readonly stage: string;
  readonly file: string;
  /** Load all files of the file's folder. */
  readonly wholeFolder: boolean;
  readonly columns: readonly ChosenColumn[];
  /** Empty means that of the stage, or by the names of the files. */
  readonly format: string;
  readonly onError: (typeof ON_ERROR)[number];
  readonly addColumns: boolean;
  readonly force: boolean;
  readonly purge: boolean;
}

const SIMPLE = /^[a-z_][a-z0-9_]*$/;
const BARE_PATH = /^[A-Za-z0-9_./=+:%~-]*$/;
/** Words that a parser might take for something else. */
const RESERVED = new Set(["from", "select", "table", "order", "group", "by", "as"]);

export function copyStatement(form: CopyForm): string {
  const declared = form.columns.some(({ type }) => type);
  const columns = declared
    ? ` (${form.columns.map(({ name, type }) => `${column(name)}${type && ` ${type}`}`).join(", ")})`
    : "";
  const folder = folderOf(form.file);
  const lines = [
    `COPY INTO ${table(form.table)}${columns}`,
    form.wholeFolder
      ? `FROM ${path(form.stage, folder)}`
      : `FROM @${form.stage} FILES=(${text(form.file)})`,
  ];
  if (form.format) lines.push(`FILE_FORMAT=(TYPE=${form.format})`);
  const options = [
    form.onError !== "ABORT" && `ON_ERROR=${form.onError}`,
    form.addColumns && "ADD_COLUMNS=true",
    form.force && "FORCE=true",
    form.purge && "PURGE=true",
  ].filter((option) => option !== false);
  if (options.length) lines.push(options.join(" "));
  return lines.join("\n");
}

/** The same statement, but it only reports errors. */
export function checkStatement(form: CopyForm): string {
  return `${copyStatement({ ...form, purge: false })}\nVALIDATION_MODE=RETURN_ERRORS`;
}

/** A table name for a file: `2026/Orders-1.csv.gz` becomes `orders_1`. */
export function tableFor(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1).replace(/\.[a-z0-9.]*$/i, "");
  const safe = name
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^[a-z]/.test(safe) ? safe.slice(0, 63) : `t_${safe}`.slice(0, 63);
}

/** Folder of a file, with a slash at its end; empty for a file of the stage itself. */
export function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf("/") + 1);
}

function table(name: string): string {
  return SIMPLE.test(name) && !RESERVED.has(name) ? name : quoted(name);
}

function column(name: string): string {
  return SIMPLE.test(name) && !RESERVED.has(name) ? name : quoted(name);
}

function path(stage: string, folder: string): string {
  return BARE_PATH.test(folder) ? `@${stage}/${folder}` : text(`@${stage}/${folder}`);
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
