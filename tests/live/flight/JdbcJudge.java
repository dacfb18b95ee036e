import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;

/**
 * What a BI tool does by JDBC. Prints a line per question: its name, a tab, the answer.
 *
 * <p>Arguments: a URL, a user and a password (empty for none), a number of rows, then the names of
 * the parts to run.
 */
public final class JdbcJudge {
  private static final int NANOS_PER_MS = 1_000_000;

  private final Connection connection;
  private final long rowCount;

  private JdbcJudge(Connection connection, long rowCount) {
    this.connection = connection;
    this.rowCount = rowCount;
  }

  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    if (!arguments[1].isEmpty()) {
      properties.put("user", arguments[1]);
      properties.put("password", arguments[2]);
    }
    try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
      JdbcJudge judge = new JdbcJudge(connection, Long.parseLong(arguments[3]));
      for (String part : Arrays.asList(arguments).subList(4, arguments.length)) {
        JdbcJudge.class.getDeclaredMethod(part).invoke(judge);
      }
    } catch (SQLException error) {
      print("refused", error.getMessage());
    } catch (InvocationTargetException error) {
      error.getCause().printStackTrace();
      System.exit(1);
    }
    System.exit(0);
  }

  private static void print(String name, Object answer) {
    String text = String.valueOf(answer).replace("\n", " ").replace("\t", " ");
    System.out.println(name + "\t" + text);
  }

  void query() throws SQLException {
    print("one", rows("SELECT 1 AS a, 'x' AS b"));
  }

  /** Every question without arguments, as tools ask them all when they connect. */
  void properties() throws Exception {
    DatabaseMetaData metadata = connection.getMetaData();
    TreeSet<String> failed = new TreeSet<>();
    int count = 0;
    Method[] methods = DatabaseMetaData.class.getMethods();
    Arrays.sort(methods, Comparator.comparing(Method::getName));
    for (Method method : methods) {
      if (method.getParameterCount() > 0 || method.getDeclaringClass() != DatabaseMetaData.class) {
        continue;
      }
      try {
        Object answer = method.invoke(metadata);
        if (answer instanceof ResultSet found) {
          found.close();
        }
        count++;
      } catch (InvocationTargetException error) {
        if (!(error.getCause() instanceof SQLFeatureNotSupportedException)) {
          failed.add(method.getName() + ": " + error.getCause());
        }
      }
    }
    print("answered", count > 100);
    print("failed", failed);
    print("product", metadata.getDatabaseProductName());
    print("quote", metadata.getIdentifierQuoteString());
    print("read only", metadata.isReadOnly());
  }

  /** What a tree of tables is made of. */
  void catalog() throws SQLException {
    DatabaseMetaData metadata = connection.getMetaData();
    print("catalogs", column(metadata.getCatalogs(), "TABLE_CAT"));
    print("schemas", column(metadata.getSchemas(), "TABLE_SCHEM"));
    print("types", column(metadata.getTableTypes(), "TABLE_TYPE"));
    String[] onlyTables = {"TABLE"};
    print("table", column(metadata.getTables(null, null, "sto_k", onlyTables), "TABLE_NAME"));
    print(
        "views",
        column(metadata.getTables("datafusion", "public", "%", new String[] {"VIEW"}), "TABLE_NAME"));
    print("columns", column(metadata.getColumns(null, null, "stock", "%"), "COLUMN_NAME"));
    print("column types", column(metadata.getColumns(null, null, "stock", null), "DATA_TYPE"));
    print("of logs", column(metadata.getColumns(null, null, "logs", null), "COLUMN_NAME").size() > 20);
    print("key", column(metadata.getPrimaryKeys(null, null, "stock"), "COLUMN_NAME"));
    print("imported", column(metadata.getImportedKeys(null, null, "stock"), "FKTABLE_NAME"));
    print("exported", column(metadata.getExportedKeys(null, null, "stock"), "FKTABLE_NAME"));
    for (String optional : List.of("getIndexInfo", "getProcedures", "getFunctions")) {
      print(optional, optionally(metadata, optional));
    }
  }

  private static Object optionally(DatabaseMetaData metadata, String name) {
    try (ResultSet found =
        switch (name) {
          case "getIndexInfo" -> metadata.getIndexInfo(null, null, "stock", false, true);
          case "getProcedures" -> metadata.getProcedures(null, null, "%");
          default -> metadata.getFunctions(null, null, "%");
        }) {
      return !found.next();
    } catch (SQLException error) {
      return error instanceof SQLFeatureNotSupportedException;
    }
  }

  void parameters() throws SQLException {
    String text =
        "SELECT id, item FROM stock WHERE id > ? AND item <> ? AND at < ? AND price >= ? "
            + "AND is_there = ? ORDER BY id LIMIT ?";
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      ParameterMetaData parameters = statement.getParameterMetaData();
      List<String> types = new ArrayList<>();
      for (int i = 1; i <= parameters.getParameterCount(); i++) {
        types.add(parameters.getParameterTypeName(i));
      }
      print("parameter types", types);
      for (int limit = 1; limit <= 2; limit++) {
        statement.setLong(1, 1);
        statement.setString(2, "it's");
        statement.setTimestamp(3, Timestamp.valueOf("2100-01-01 00:00:00"));
        statement.setDouble(4, 0.5);
        statement.setBoolean(5, true);
        statement.setLong(6, limit);
        try (ResultSet found = statement.executeQuery()) {
          print("chosen " + limit, rows(found));
        }
      }
    }
    try (PreparedStatement statement =
        connection.prepareStatement("SELECT count(*) FROM logs WHERE time < ? OR time >= ?")) {
      statement.setTimestamp(1, Timestamp.valueOf("2026-11-19 00:00:00"));
      statement.setTimestamp(2, Timestamp.valueOf("2026-11-19 00:00:00"));
      try (ResultSet found = statement.executeQuery()) {
        print("times", rows(found));
      }
    }
  }

  void types() throws SQLException {
    String text =
        "SELECT CAST(1 AS TINYINT) a, CAST(2 AS SMALLINT) b, CAST(3 AS INT) c, CAST(4 AS BIGINT) d,"
            + " CAST(1.5 AS REAL) e, CAST(2.5 AS DOUBLE) f, CAST('1.25' AS DECIMAL(10, 2)) g,"
            + " true h, 'text' i, X'00ff' j, DATE '2026-11-19' k,"
            + " CAST('2026-11-19T01:02:03.000004Z' AS TIMESTAMP) l, [1, 2] m, NULL n";
    try (Statement statement = connection.createStatement();
        ResultSet found = statement.executeQuery(text)) {
      found.next();
      print("integers", found.getInt(1) + found.getInt(2) + found.getInt(3) + found.getLong(4));
      print("floats", found.getFloat(5) + found.getDouble(6));
      print("decimal", found.getBigDecimal(7).equals(new BigDecimal("1.25")));
      print("boolean", found.getBoolean(8));
      print("text", found.getString(9));
      print("bytes", Arrays.toString(found.getBytes(10)));
      print("date", found.getDate(11));
      print("timestamp", found.getTimestamp(12).getNanos());
      print("list", found.getArray(13).toString().contains("2"));
      print("null", found.getObject(14) == null && found.wasNull());
      ResultSetMetaData columns = found.getMetaData();
      print("names", columns.getColumnCount() + columns.getColumnLabel(1));
    }
    print("map", rows("SELECT attributes FROM logs LIMIT 0"));
  }

  void statements() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("DROP TABLE IF EXISTS stock");
      statement.execute(
          "CREATE TABLE stock (id BIGINT NOT NULL, item TEXT, price DOUBLE, is_there BOOLEAN,"
              + " at TIMESTAMP, PRIMARY KEY (id))");
      print(
          "inserted",
          statement.executeUpdate(
              "INSERT INTO stock VALUES (1, 'tea', 1.5, true, TIMESTAMP '2026-11-19 00:00:00'),"
                  + " (2, 'milk', 2.5, true, TIMESTAMP '2026-11-19 00:00:00')"));
    }
    String text = "INSERT INTO stock (id, item, price, is_there, at) VALUES (?, ?, 3.5, true, "
        + "TIMESTAMP '2026-11-19 00:00:00')";
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      statement.setLong(1, 3);
      statement.setString(2, "it's");
      print("bound", statement.executeUpdate());
    }
    try (PreparedStatement statement =
        connection.prepareStatement("UPDATE stock SET price = ? WHERE id = ?")) {
      statement.setDouble(1, 9.5);
      statement.setLong(2, 2);
      print("updated", statement.executeUpdate());
    }
    try (Statement statement = connection.createStatement()) {
      print("deleted", statement.executeUpdate("DELETE FROM stock WHERE id = 1"));
    }
    print("left", rows("SELECT id, item, price FROM stock ORDER BY id"));
  }

  void errors() throws SQLException {
    for (String text :
        List.of("SELEC 1", "SELECT * FROM nowhere", "SELECT 1 / 0 AS a", "DROP TABLE nowhere")) {
      try (Statement statement = connection.createStatement()) {
        statement.execute(text);
        ResultSet found = statement.getResultSet();
        while (found != null && found.next()) {
          found.getObject(1);
        }
        print(text, "no error");
      } catch (SQLException error) {
        print(text, error.getMessage());
      }
    }
  }

  /** Rows of a large result, and the milliseconds they take. */
  void rows() throws SQLException {
    String text = "SELECT value AS a, value * 2 AS b FROM generate_series(1, " + rowCount + ")";
    long begin = System.nanoTime();
    long count = 0;
    long sum = 0;
    try (Statement statement = connection.createStatement();
        ResultSet found = statement.executeQuery(text)) {
      while (found.next()) {
        count++;
        sum += found.getLong(2) - found.getLong(1);
      }
    }
    print("rows", count);
    print("sum", sum == rowCount * (rowCount + 1) / 2);
    print("took_ms", (System.nanoTime() - begin) / NANOS_PER_MS);
  }

  /** A statement that is closed, or cancelled, while its query runs. */
  void cancel() throws Exception {
    String endless = "SELECT count(*) FROM generate_series(1, 900000) a, generate_series(1, 900000) b";
    Statement statement = connection.createStatement();
    List<String> errors = new ArrayList<>();
    Thread reader =
        new Thread(
            () -> {
              try (ResultSet found = statement.executeQuery(endless)) {
                found.next();
                errors.add("no error");
              } catch (SQLException | RuntimeException error) {
                errors.add(error.getClass().getSimpleName());
              }
            });
    reader.start();
    Thread.sleep(1000);
    statement.cancel();
    reader.join(10_000);
    print("cancelled", !reader.isAlive() && !errors.contains("no error"));
    statement.close();
  }

  private String rows(String text) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet found = statement.executeQuery(text)) {
      return rows(found);
    }
  }

  private static String rows(ResultSet found) throws SQLException {
    List<String> rows = new ArrayList<>();
    int count = found.getMetaData().getColumnCount();
    while (found.next()) {
      List<String> row = new ArrayList<>();
      for (int i = 1; i <= count; i++) {
        row.add(String.valueOf(found.getObject(i)));
      }
      rows.add(row.toString());
    }
    return rows.toString();
  }

  private static List<String> column(ResultSet found, String name) throws SQLException {
    List<String> values = new ArrayList<>();
    try (found) {
      while (found.next()) {
        values.add(found.getString(name));
      }
    }
    return values;
  }
}
