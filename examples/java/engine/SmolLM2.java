package engine;

import java.io.IOException;
import java.nio.file.Path;
import java.util.stream.IntStream;

/**
 * SmolLM2 (a Llama) in plain Java, but for the attention of decode steps, which somebody else does.
 */
final class SmolLM2 {
  /** What a layer's attention is given, after RoPE: q [n][Hq * D], k and v [n][Hkv * D]. */
  interface Attention {
    /** The output [n][Hq * D]. */
    float[][] attend(int layer, float[][] q, float[][] k, float[][] v);
  }

  private record Layer(
      float[] attentionNorm,
      Matrix qkv,
      Matrix output,
      float[] ffnNorm,
      Matrix gateUp,
      Matrix down) {}

  final int layers;
  final int qHeads;
  final int kvHeads;
  final int headDim;
  private final int hidden;
  private final float epsilon;
  private final double ropeBase;
  private final Layer[] layer;
  private final Matrix embedding; // [hidden, vocabulary]: the input's and the output's
  private final float[] outputNorm;

  SmolLM2(Gguf file) {
    layers = file.integer("llama.block_count");
    qHeads = file.integer("llama.attention.head_count");
    kvHeads = file.integer("llama.attention.head_count_kv");
    hidden = file.integer("llama.embedding_length");
    headDim = hidden / qHeads;
    epsilon = file.real("llama.attention.layer_norm_rms_epsilon");
    ropeBase = file.real("llama.rope.freq_base");
    embedding = Matrix.load(file, "token_embd");
    outputNorm = file.vector("output_norm");
    layer = new Layer[layers];
    for (int l = 0; l < layers; ++l) {
      String block = "blk." + l + ".";
      layer[l] =
          new Layer(
              file.vector(block + "attn_norm"),
              Matrix.load(file, block + "attn_q", block + "attn_k", block + "attn_v"),
              Matrix.load(file, block + "attn_output"),
              file.vector(block + "ffn_norm"),
              Matrix.load(file, block + "ffn_gate", block + "ffn_up"),
              Matrix.load(file, block + "ffn_down"));
    }
  }

  static SmolLM2 load(Path path) throws IOException {
    return new SmolLM2(new Gguf(path));
  }

  /** Logits [n][vocabulary] of the last `wanted` of n tokens at their positions. */
  float[][] forward(int[] ids, long[] positions, Attention attention, int wanted) {
    float[][] x = new float[ids.length][];
    for (int row = 0; row < ids.length; ++row) x[row] = embedding.column(ids[row]);
    for (int l = 0; l < layers; ++l) {
      Layer w = layer[l];
      float[][] qkv = w.qkv.times(norm(x, w.attentionNorm));
      int qWidth = qHeads * headDim;
      int kvWidth = kvHeads * headDim;
      for (int row = 0; row < x.length; ++row) {
        rotate(qkv[row], qHeads + kvHeads, positions[row]);
      }
      float[][] q = columns(qkv, 0, qWidth);
      float[][] k = columns(qkv, qWidth, kvWidth);
      float[][] v = columns(qkv, qWidth + kvWidth, kvWidth);
      add(x, w.output.times(attention.attend(l, q, k, v)));
      add(x, w.down.times(gated(w.gateUp.times(norm(x, w.ffnNorm)))));
    }
    float[][] last = java.util.Arrays.copyOfRange(x, x.length - wanted, x.length);
    return embedding.times(norm(last, outputNorm));
  }

  /** Dense causal attention of a prompt over itself. */
  float[][] causal(float[][] q, float[][] k, float[][] v) {
    int n = q.length;
    int group = qHeads / kvHeads;
    float[][] out = new float[n][qHeads * headDim];
    Matrix[] keys = new Matrix[kvHeads]; // [D, n]
    Matrix[] values = new Matrix[kvHeads]; // [n, D]
    for (int head = 0; head < kvHeads; ++head) {
      float[][] turned = new float[headDim][n];
      float[][] own = columns(v, head * headDim, headDim);
      for (int s = 0; s < n; ++s) {
        for (int d = 0; d < headDim; ++d) turned[d][s] = k[s][head * headDim + d];
      }
      keys[head] = new Matrix(turned, n);
      values[head] = new Matrix(own, headDim);
    }
    int block = 16; // queries that look up to the same key
    IntStream.range(0, (n + block - 1) / block * qHeads)
        .parallel()
        .forEach(
            task -> {
              int head = task % qHeads;
              int from = task / qHeads * block;
              int end = Math.min(from + block, n);
              float[][] queries = new float[end - from][];
              for (int r = from; r < end; ++r) {
                queries[r - from] =
                    java.util.Arrays.copyOfRange(q[r], head * headDim, (head + 1) * headDim);
              }
              float[][] scores = new float[end - from][end];
              float[][] mixed = new float[end - from][headDim];
              keys[head / group].multiply(queries, 0, end - from, headDim, 0, end, scores);
              for (int r = from; r < end; ++r) softmax(scores[r - from], r + 1);
              values[head / group].multiply(scores, 0, end - from, end, 0, headDim, mixed);
              for (int r = from; r < end; ++r) {
                System.arraycopy(mixed[r - from], 0, out[r], head * headDim, headDim);
              }
            });
    return out;
  }

  /** Of the first `seen` scores of D-wide products; the others weigh nothing. */
  private void softmax(float[] scores, int seen) {
    float scale = (float) (1 / Math.sqrt(headDim));
    float largest = Float.NEGATIVE_INFINITY;
    for (int i = 0; i < seen; ++i) largest = Math.max(largest, scores[i]);
    double sum = 0;
    for (int i = 0; i < seen; ++i) {
      scores[i] = (float) Math.exp((scores[i] - largest) * scale);
      sum += scores[i];
    }
    for (int i = 0; i < seen; ++i) scores[i] /= (float) sum;
    java.util.Arrays.fill(scores, seen, scores.length, 0);
  }

  private float[][] norm(float[][] x, float[] weight) {
    float[][] out = new float[x.length][hidden];
    for (int row = 0; row < x.length; ++row) {
      double sum = 0;
      for (float value : x[row]) sum += (double) value * value;
      float scale = (float) (1 / Math.sqrt(sum / hidden + epsilon));
      for (int i = 0; i < hidden; ++i) out[row][i] = x[row][i] * scale * weight[i];
    }
    return out;
  }

  /** RoPE of the first heads; the file's rows pair the channels 2i and 2i + 1. */
  private void rotate(float[] row, int heads, long position) {
    for (int pair = 0; pair < headDim / 2; ++pair) {
      double angle = position * Math.pow(ropeBase, -2.0 * pair / headDim);
      float cos = (float) Math.cos(angle);
      float sin = (float) Math.sin(angle);
      for (int head = 0; head < heads; ++head) {
        int at = head * headDim + 2 * pair;
        float even = row[at];
        float odd = row[at + 1];
        row[at] = even * cos - odd * sin;
        row[at + 1] = even * sin + odd * cos;
      }
    }
  }

  /** SiLU of the first half of each row, times the second half. */
  private static float[][] gated(float[][] gateUp) {
    int width = gateUp[0].length / 2;
    float[][] out = new float[gateUp.length][width];
    IntStream.range(0, out.length)
        .parallel()
        .forEach(
            row -> {
              float[] both = gateUp[row];
              for (int i = 0; i < width; ++i) {
                out[row][i] = both[i] / (1 + (float) Math.exp(-both[i])) * both[width + i];
              }
            });
    return out;
  }

  private static float[][] columns(float[][] rows, int from, int width) {
    float[][] out = new float[rows.length][];
    for (int row = 0; row < out.length; ++row) {
      out[row] = java.util.Arrays.copyOfRange(rows[row], from, from + width);
    }
    return out;
  }

  private static void add(float[][] x, float[][] more) {
    for (int row = 0; row < x.length; ++row) {
      for (int i = 0; i < x[row].length; ++i) x[row][i] += more[row][i];
    }
  }
}
