/** Snippets that read a table with other engines, using this node's catalog settings. */

import type { CatalogInfo } from "../../lib/api/types.gen";

export interface Snippet {
  readonly name: string;
  readonly about: string;
  readonly text: string;
}

/** A string literal in Python and JSON. */
const quoted = (text: string) => JSON.stringify(text);
/** A string literal in a shell. */
const inShell = (text: string) =>
  /^[\w.:/=,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
/** A string literal in SQL. */
const inSql = (text: string) => `'${text.replaceAll("'", "''")}'`;

const EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions";

export function engineSnippets(
  catalog: CatalogInfo,
  table: string,
  metadataLocation: string,
): Snippet[] {
  const name = `${catalog.namespace}.${table}`;
  const full = `${catalog.name}.${name}`;
  const settings = Object.entries({ "spark.sql.extensions": EXTENSIONS, ...catalog.spark });
  const properties = Object.entries(catalog.properties)
    .map(([key, value]) => `        ${quoted(key)}: ${quoted(value)},`)
    .join("\n");
  return [
    {
      name: "PyIceberg",
      about: "Python without Java. Filters and columns are pushed down.",
      text: `from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    ${quoted(catalog.name)},
    **{
${properties}
    },
)
table = catalog.load_table(${quoted(name)})
print(table.scan(limit=10).to_arrow())`,
    },
    {
      name: "PySpark",
      about: "Works while this node writes.",
      text: `from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.config("spark.jars.packages", ${quoted(catalog.spark_packages.join(","))})
${settings.map(([key, value]) => `    .config(${quoted(key)}, ${quoted(value)})`).join("\n")}
    .getOrCreate()
)
spark.table(${quoted(full)}).show()`,
    },
    {
      name: "spark-sql",
      about: "Command line.",
      text: [
        `spark-sql --packages ${inShell(catalog.spark_packages.join(","))}`,
        ...settings.map(([key, value]) => `  --conf ${inShell(`${key}=${value}`)}`),
        `  -e ${inShell(`SELECT count(*) FROM ${full}`)}`,
      ].join(" \\\n"),
    },
    {
      name: "DuckDB",
      about: "Reads this version of the table. The next commit writes a new metadata file.",
      text: `INSTALL iceberg;
LOAD iceberg;
SELECT count(*) FROM iceberg_scan(${inSql(metadataLocation.replace(/^file:\/\//, ""))});`,
    },
  ];
}
