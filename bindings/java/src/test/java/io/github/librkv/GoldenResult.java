package io.github.librkv;

import java.lang.reflect.Method;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * What an action gave, for the expectations that follow it. Parts that it did not give are null.
 */
final class GoldenResult {
  private Record fields;
  private long[][] kept;
  private Selection selection;
  private Tensor out;
  private Tensor lse;

  static GoldenResult of(Record fields) {
    GoldenResult result = new GoldenResult();
    result.fields = fields;
    return result;
  }

  static GoldenResult of(long[][] kept) {
    GoldenResult result = new GoldenResult();
    result.kept = kept;
    return result;
  }

  static GoldenResult of(Selection selection, Tensor out, Tensor lse) {
    GoldenResult result = new GoldenResult();
    result.selection = selection;
    result.out = out;
    result.lse = lse;
    return result;
  }

  void check(GoldenLine line) {
    String what = line.word(1);
    if (what.equals("fields") && fields != null) {
      for (String word : line.from(3)) field(line, line.field(word));
    } else if (what.equals("kept") && kept != null) {
      list(line, LongStream.of(kept[line.small(2)]), line.word(3));
    } else if (what.equals("selection") && selection != null) {
      int[] got = selection.indices(line.small(2), line.small(3));
      list(line, IntStream.of(got).asLongStream(), line.word(4));
    } else if (what.equals("out") && out != null) {
      int heads = (int) out.shape(1);
      row(line, out, line.small(2) * heads + line.small(3), (int) out.shape(2), 4);
    } else if (what.equals("lse") && lse != null) {
      row(line, lse, line.small(2), (int) lse.shape(1), 3);
    } else {
      throw line.fail("= %s does not belong to the action before", what);
    }
  }

  private void field(GoldenLine line, String[] field) {
    try {
      Method method = fields.getClass().getMethod(GoldenRunner.camel(field[0]));
      Object got = method.invoke(fields);
      double number = got instanceof Boolean set ? (set ? 1 : 0) : ((Number) got).doubleValue();
      line.near(field[0], number, field[1], line.real(2));
    } catch (ReflectiveOperationException e) {
      throw line.fail("%s: no such field", field[0]);
    }
  }

  private static void list(GoldenLine line, LongStream got, String word) {
    List<Long> have = got.boxed().toList();
    List<Long> want = line.list(word);
    if (have.equals(want)) return;
    int at = 0;
    while (at < Math.min(have.size(), want.size()) && have.get(at).equals(want.get(at))) ++at;
    throw line.fail(
        "%d entries, expected %d; they differ from entry %d on", have.size(), want.size(), at);
  }

  /** Row `row` of a tensor seen as [.., width]; its tolerance is word `at`. */
  private static void row(GoldenLine line, Tensor tensor, int row, int width, int at) {
    List<String> want = line.from(at + 1);
    if (want.size() != width) throw line.fail("%d values, expected %d", width, want.size());
    for (int i = 0; i < width; ++i) {
      double got = GoldenValues.element(tensor, row * width + i);
      line.near("value " + i, got, want.get(i), line.real(at));
    }
  }
}
