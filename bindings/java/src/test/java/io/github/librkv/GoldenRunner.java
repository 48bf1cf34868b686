package io.github.librkv;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs golden vectors through the binding: {@code GoldenRunner FILE...}. Ends with the line of
 * tests/golden/README.md, or with the place and what differs and exit status 1.
 */
final class GoldenRunner implements AutoCloseable {
  private final GoldenValues values = new GoldenValues();
  private int cases;

  private Cache cache;
  private CacheConfig.Builder builder;
  private SequenceOptions options;
  private final Map<Integer, Long> seeds = new HashMap<>();
  private Selection selection;
  private int selectedRows;
  private GoldenResult result; // of the last action

  public static void main(String[] files) throws IOException {
    try (GoldenRunner runner = new GoldenRunner()) {
      for (String file : files) runner.run(Path.of(file));
      System.out.println(runner.summary());
    } catch (GoldenLine.Mismatch e) {
      System.out.println(e.getMessage());
      System.exit(1);
    }
  }

  String summary() {
    return String.format("golden: %d cases, checksum %016x", cases, values.checksum());
  }

  void run(Path file) throws IOException {
    run(file.toString(), Files.readAllLines(file));
  }

  void run(String name, List<String> lines) {
    int number = 0;
    for (String text : lines) {
      GoldenLine line = new GoldenLine(name + ":" + ++number, text);
      if (number == 1 && !text.equals("rkv-golden 1")) {
        throw line.fail("the first line must be rkv-golden 1");
      }
      if (number > 1 && !line.words.isEmpty()) directive(line);
    }
  }

  @Override
  public void close() {
    if (cache != null) cache.close();
  }

  private void directive(GoldenLine line) {
    switch (line.word(0)) {
      case "case" -> beginCase();
      case "config" -> line.from(1).forEach(word -> config(line, line.field(word)));
      case "options" -> options(line);
      case "set" ->
          values.set(
              List.of("q", "k", "v").indexOf(line.word(1)),
              line.integer(2),
              line.small(3),
              line.small(4),
              (float) line.real(5));
      case "=" -> {
        if (result == null) throw line.fail("belongs to no action");
        result.check(line);
      }
      default -> {
        result = null;
        settle(line);
      }
    }
  }

  private void beginCase() {
    close();
    cache = null;
    ++cases;
    builder = CacheConfig.builder();
    options = SequenceOptions.DEFAULT;
    seeds.clear();
    values.clear();
    selection = null;
    result = null;
  }

  /**
   * By the C name; the builder's own fields hold the library's numbers, so wrong ones get there.
   */
  private void config(GoldenLine line, String[] field) {
    if (field[0].equals("dense_layers")) {
      builder.denseLayers(line.list(field[1]).stream().mapToInt(Long::intValue).toArray());
      return;
    }
    try {
      Field target = CacheConfig.Builder.class.getDeclaredField(camel(field[0]));
      if (target.getType() == int.class) {
        target.setInt(builder, (int) line.integer(field[1]));
      } else if (target.getType() == long.class) {
        target.setLong(builder, line.integer(field[1]));
      } else if (target.getType() == float.class) {
        target.setFloat(builder, (float) line.real(field[1]));
      } else {
        target.setDouble(builder, line.real(field[1]));
      }
    } catch (ReflectiveOperationException e) {
      throw line.fail("%s: no such field", field[0]);
    }
  }

  private void options(GoldenLine line) {
    options = SequenceOptions.DEFAULT;
    for (String word : line.from(1)) {
      String[] field = line.field(word);
      options =
          switch (field[0]) {
            case "max_new_tokens" -> options.withMaxNewTokens(line.integer(field[1]));
            case "token_budget" -> options.withTokenBudget(line.integer(field[1]));
            case "compression_ratio" -> options.withCompressionRatio(line.real(field[1]));
            default -> throw line.fail("%s: no such field", field[0]);
          };
    }
  }

  /** One call; its status and text must be the expected ones. */
  private void settle(GoldenLine line) {
    try {
      action(line);
    } catch (RkvException e) {
      if (e.status() != line.status) {
        throw line.fail("%s (%s), expected %s", e.status(), e.getMessage(), line.status);
      }
      if (!e.getMessage().contains(line.text)) {
        throw line.fail("the text \"%s\" lacks %s", e.getMessage(), line.text);
      }
      values.add(e.statusCode(), 4);
      return;
    }
    if (line.status != Status.OK) throw line.fail("OK, expected %s", line.status);
  }

  private void action(GoldenLine line) {
    CacheConfig config = builder.build();
    switch (line.word(0)) {
      case "plan" -> result = GoldenResult.of(Plan.of(config, options, line.integer(1)));
      case "memory" -> result = GoldenResult.of(CacheMemory.of(config));
      case "create" -> {
        Cache made = new Cache(config);
        close();
        cache = made;
      }
      case "open" -> {
        cache.open(line.small(1), options);
        seeds.put(line.small(1), line.integer(2));
      }
      case "close" -> cache.closeSequence(line.small(1));
      case "rewind" -> cache.rewind(line.small(1), line.integer(2));
      case "fork" -> cache.fork(line.small(1), line.small(2));
      case "export" ->
          cache.exportLayer(
              line.small(1), line.small(2), 0, config.kvHeads(), null, null, null, null, 0);
      case "import" ->
          cache.importLayer(
              line.small(1), line.small(2), 0, config.kvHeads(), ByteBuffer.allocateDirect(16));
      case "prefill" -> prefill(line);
      case "kept" -> kept(line);
      case "stats" -> result = GoldenResult.of(cache.stats(line.small(1), line.small(2)));
      case "select", "attend", "decode", "audit" -> rows(line);
      default -> throw line.fail("no directive %s", line.word(0));
    }
  }

  private void prefill(GoldenLine line) {
    int seq = line.small(1);
    int layer = line.small(2);
    long prompt = line.integer(3);
    long start = line.integer(4);
    long end = line.integer(5);
    long seed = seeds.getOrDefault(seq, 0L);
    Tensor q = end > start ? rows(GoldenValues.Q, (int) (end - start), seed, layer, start) : null;
    boolean last = end == prompt;
    Tensor k = last ? rows(GoldenValues.K, (int) end, seed, layer, 0) : null;
    Tensor v = last ? rows(GoldenValues.V, (int) end, seed, layer, 0) : null;
    cache.prefill(seq, layer, start, prompt, q, k, v);
  }

  private Tensor rows(int kind, int rows, long seed, int layer, long start) {
    Tensor tensor = tensor(kind, rows);
    for (int row = 0; row < rows; ++row) values.fill(tensor, kind, row, seed, layer, start + row);
    return tensor;
  }

  private Tensor tensor(int kind, int rows) {
    boolean query = kind == GoldenValues.Q || kind == GoldenValues.OUT;
    boolean value = kind == GoldenValues.V || kind == GoldenValues.OUT;
    int dtype = query && builder.queryDtype != 0 ? builder.queryDtype : builder.kvDtype;
    return Tensor.allocate(
        DType.values()[dtype - 1],
        rows,
        query ? builder.qHeads : builder.kvHeads,
        value && builder.headDimV != 0 ? builder.headDimV : builder.headDim);
  }

  private void kept(GoldenLine line) {
    long[][] kept = cache.keptPositions(line.small(1), line.small(2));
    for (long[] head : kept) for (long position : head) values.add(position, 8);
    result = GoldenResult.of(kept);
  }

  private void rows(GoldenLine line) {
    String name = line.word(0);
    boolean audit = name.equals("audit");
    boolean selects = name.equals("select");
    boolean attends = name.equals("attend");
    int layer = line.small(1);
    List<String> words = line.from(2);
    int rows = words.size();
    Tensor[] in = {
      tensor(GoldenValues.Q, rows), tensor(GoldenValues.K, rows), tensor(GoldenValues.V, rows)
    };
    DecodeArgs args = new DecodeArgs(rows).q(in[0]).k(in[1]).v(in[2]);
    for (int row = 0; row < rows; ++row) {
      String[] word = words.get(row).split(":");
      int seq = (int) line.integer(word[0]);
      long position = line.integer(word[1]);
      args.row(row, seq, position);
      long seed = seq == -1 ? 0 : seeds.getOrDefault(seq, 0L);
      for (int kind = 0; kind < 3; ++kind) {
        values.fill(in[kind], kind, row, seed, layer, seq == -1 ? 0 : position);
      }
    }
    if (audit) {
      result = GoldenResult.of(cache.audit(layer, args));
      return;
    }
    if (!attends) {
      selection = cache.newSelection(rows);
      selectedRows = rows;
    } else if (rows > selectedRows) {
      throw line.fail("no select of as many rows");
    }
    args.selection(selection);
    Tensor out = selects ? null : tensor(GoldenValues.OUT, rows);
    Tensor lse = selects ? null : Tensor.allocate(DType.F32, rows, builder.qHeads);
    if (!selects) {
      GoldenValues.fillNan(out);
      GoldenValues.fillNan(lse);
      args.out(out).lse(lse.floats());
    }
    switch (name) {
      case "select" -> cache.decodeSelect(layer, args);
      case "attend" -> cache.attend(layer, args);
      default -> cache.decode(layer, args);
    }
    if (!attends) add(selection, rows);
    if (!selects) {
      values.add(out);
      values.add(lse);
    }
    result = GoldenResult.of(attends ? null : selection, out, lse);
  }

  private void add(Selection lists, int rows) {
    for (int row = 0; row < rows; ++row) {
      for (int head = 0; head < builder.kvHeads; ++head) {
        int[] list = lists.indices(row, head);
        values.add(list.length, 4);
        for (int index : list) values.add(index, 4);
      }
    }
  }

  static String camel(String name) {
    StringBuilder out = new StringBuilder();
    for (String part : name.split("_")) {
      out.append(out.length() == 0 ? part : part.substring(0, 1).toUpperCase() + part.substring(1));
    }
    return out.toString();
  }
}
