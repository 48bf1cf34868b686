package engine;

import io.github.librkv.Cache;
import io.github.librkv.CacheConfig;
import io.github.librkv.CacheConfig.Builder;
import io.github.librkv.DType;
import io.github.librkv.DecodeArgs;
import io.github.librkv.Tensor;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.function.UnaryOperator;

/** Several texts in one librkv cache: prompts one by one, then a token of each at a time. */
final class Session implements AutoCloseable {
  private static final int WINDOW = 32; // last queries of a prompt that librkv looks at

  private final SmolLM2 model;
  private final Cache cache;
  private final DecodeArgs step;
  private final Tensor q;
  private final Tensor k;
  private final Tensor v;
  private final Tensor out;

  /**
   * For up to `texts` texts with prompts of at most `prompt` tokens, and `fresh` tokens more. The
   * budget sets how much is kept and read.
   */
  Session(SmolLM2 model, int texts, int prompt, int fresh, UnaryOperator<Builder> budget) {
    this.model = model;
    Builder shape =
        CacheConfig.builder()
            .layers(model.layers)
            .qHeads(model.qHeads)
            .kvHeads(model.kvHeads)
            .headDim(model.headDim)
            .kvDtype(DType.F32)
            .maxSequences(texts)
            .maxPromptTokens(prompt)
            .maxNewTokens(fresh);
    cache = new Cache(budget.apply(shape).build());
    q = Tensor.allocate(DType.F32, texts, model.qHeads, model.headDim);
    k = Tensor.allocate(DType.F32, texts, model.kvHeads, model.headDim);
    v = Tensor.allocate(DType.F32, texts, model.kvHeads, model.headDim);
    out = Tensor.allocate(DType.F32, texts, model.qHeads, model.headDim);
    step = new DecodeArgs(texts).q(q).k(k).v(v).out(out);
  }

  @Override
  public void close() {
    cache.close();
  }

  /** Bytes of K, V and summaries that a text holds now, and what full KV would. */
  long[] bytes(int text) {
    long[] sum = new long[2];
    for (int layer = 0; layer < model.layers; ++layer) {
      var stats = cache.stats(text, layer);
      sum[0] += stats.kBytes() + stats.vBytes() + stats.summaryBytes() + stats.indexBytes();
      sum[1] += stats.fullKvBytes();
    }
    return sum;
  }

  /** Reads a prompt into texts of several sessions at once; returns its last token's logits. */
  static float[] prefill(SmolLM2 model, int text, int[] prompt, Session... sessions) {
    int n = prompt.length;
    int window = Math.min(WINDOW, n);
    Tensor q = Tensor.allocate(DType.F32, window, model.qHeads, model.headDim);
    Tensor k = Tensor.allocate(DType.F32, n, model.kvHeads, model.headDim);
    Tensor v = Tensor.allocate(DType.F32, n, model.kvHeads, model.headDim);
    for (Session session : sessions) session.cache.open(text);
    long[] positions = new long[n];
    Arrays.setAll(positions, i -> i);
    return model
        .forward(
            prompt,
            positions,
            (layer, queries, keys, values) -> {
              copy(Arrays.copyOfRange(queries, n - window, n), q);
              copy(keys, k);
              copy(values, v);
              for (Session session : sessions) {
                session.cache.prefill(text, layer, n - window, n, q, k, v);
              }
              return model.causal(queries, keys, values);
            },
            1)[0];
  }

  /** The next token of each text at its position; returns the logits [texts][vocabulary]. */
  float[][] decode(int[] ids, long[] positions) {
    step.rows(ids.length);
    for (int row = 0; row < ids.length; ++row) step.row(row, row, positions[row]);
    return forward(ids, positions);
  }

  /** The next token of one text; returns its logits. */
  float[] decode(int text, int id, long position) {
    step.rows(1).row(0, text, position);
    return forward(new int[] {id}, new long[] {position})[0];
  }

  private float[][] forward(int[] ids, long[] positions) {
    int rows = ids.length;
    step.q(q.rows(0, rows)).k(k.rows(0, rows)).v(v.rows(0, rows)).out(out.rows(0, rows));
    return model.forward(
        ids,
        positions,
        (layer, queries, keys, values) -> {
          copy(queries, q);
          copy(keys, k);
          copy(values, v);
          cache.decode(layer, step);
          float[][] heads = new float[rows][queries[0].length];
          FloatBuffer from = out.floats();
          for (float[] row : heads) from.get(row);
          return heads;
        },
        rows);
  }

  private static void copy(float[][] rows, Tensor tensor) {
    FloatBuffer to = tensor.floats();
    for (float[] row : rows) to.put(row);
  }
}
