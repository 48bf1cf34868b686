package engine;

import java.util.stream.IntStream;

/**
 * A matrix [in, out], one array a row, so that a product runs along the rows: the loops below have
 * one index for all arrays, which the JIT compiler turns into vector code. All cores work on a
 * product.
 */
final class Matrix {
  private static final int COLUMNS = 512; // of a task
  private static final int ROWS = 16; // of a task: its part of the product stays in the L1 cache

  private final float[][] rows;
  private final int width;

  Matrix(float[][] rows, int width) {
    this.rows = rows;
    this.width = width;
  }

  /** The linear layers of these names side by side; the file has them as [out, in]. */
  static Matrix load(Gguf file, String... names) {
    int width = 0;
    for (String name : names) width += file.rows(name);
    float[][] rows = new float[file.columns(names[0])][width];
    int first = 0;
    for (String name : names) {
      int from = first;
      IntStream.range(0, (file.rows(name) + 31) / 32)
          .parallel()
          .forEach(
              part -> {
                for (int o = 32 * part; o < Math.min(32 * part + 32, file.rows(name)); ++o) {
                  float[] column = file.row(name, o);
                  for (int i = 0; i < column.length; ++i) rows[i][from + o] = column[i];
                }
              });
      first += file.rows(name);
    }
    return new Matrix(rows, width);
  }

  /** One column as an array: a row of the file's matrix. */
  float[] column(int index) {
    float[] out = new float[rows.length];
    for (int i = 0; i < out.length; ++i) out[i] = rows[i][index];
    return out;
  }

  /** x [n, in] times this. */
  float[][] times(float[][] x) {
    float[][] out = new float[x.length][width];
    int across = (width + COLUMNS - 1) / COLUMNS;
    int down = (x.length + ROWS - 1) / ROWS;
    IntStream.range(0, across * down)
        .parallel()
        .forEach(
            task -> {
              int column = task / down * COLUMNS;
              int row = task % down * ROWS;
              multiply(
                  x,
                  row,
                  Math.min(row + ROWS, x.length),
                  rows.length,
                  column,
                  Math.min(column + COLUMNS, width),
                  out);
            });
    return out;
  }

  /**
   * out[r][c] += x[r] * this, over rows from to end - 1, the first `depth` inputs, some columns.
   * Four rows of the matrix serve all rows of x while they are in the L1 cache.
   */
  void multiply(
      float[][] x, int from, int end, int depth, int column, int columnEnd, float[][] out) {
    int i = 0;
    for (; i + 4 <= depth; i += 4) {
      for (int r = from; r < end; ++r) four(x[r], i, out[r], column, columnEnd);
    }
    for (; i < depth; ++i) {
      for (int r = from; r < end; ++r) one(x[r][i], rows[i], out[r], column, columnEnd);
    }
  }

  private void four(float[] x, int i, float[] out, int column, int end) {
    float[] b0 = rows[i];
    float[] b1 = rows[i + 1];
    float[] b2 = rows[i + 2];
    float[] b3 = rows[i + 3];
    float a0 = x[i];
    float a1 = x[i + 1];
    float a2 = x[i + 2];
    float a3 = x[i + 3];
    for (int c = column; c < end; ++c) {
      out[c] += a0 * b0[c] + a1 * b1[c] + a2 * b2[c] + a3 * b3[c];
    }
  }

  private static void one(float a, float[] b, float[] out, int column, int end) {
    for (int c = column; c < end; ++c) out[c] += a * b[c];
  }
}
