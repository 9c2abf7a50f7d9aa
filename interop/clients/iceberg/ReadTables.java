import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.rest.RESTCatalog;

/** Lists and reads tables with Iceberg's own client of REST catalogs: one line for each table, each row and each refusal. */
public class ReadTables {
  public static void main(String[] arguments) throws Exception {
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.setConf(new Configuration());
      catalog.initialize("ottla", Map.of("uri", arguments[0], "rest-page-size", "1"));
      for (Namespace namespace : catalog.listNamespaces()) {
        for (TableIdentifier table : catalog.listTables(namespace)) {
          System.out.println("table " + table);
        }
      }
      TableIdentifier orders = TableIdentifier.of("topics", "orders");
      Table table = catalog.loadTable(orders);
      try (CloseableIterable<Record> rows =
          IcebergGenerics.read(table).where(Expressions.greaterThan("_offset", 1L)).select("item").build()) {
        for (Record row : rows) {
          System.out.println("row " + row.getField("item"));
        }
      }
      System.out.println("exists " + catalog.tableExists(TableIdentifier.of("topics", "none")));
      refused(() -> catalog.dropTable(orders));
      refused(() -> table.updateProperties().set("a", "b").commit());
    }
  }

  private static void refused(Runnable change) {
    try {
      change.run();
      System.out.println("not refused");
    } catch (UnsupportedOperationException refused) {
      System.out.println("refused");
    }
  }
}
