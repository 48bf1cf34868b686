package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import org.junit.jupiter.api.function.Executable;

/** A small cache with generated tensors, for the tests. */
final class Rig {
  static final int HQ = 4;
  static final int HKV = 2;
  static final int D = 16;
  static final int S = 300;
  static final long SEED = 7;

  private Rig() {}

  static CacheConfig.Builder config() {
    return CacheConfig.builder()
        .layers(2)
        .qHeads(HQ)
        .kvHeads(HKV)
        .headDim(D)
        .kvDtype(DType.F32)
        .maxSequences(2)
        .maxPromptTokens(S)
        .maxNewTokens(16)
        .tokenBudget(96)
        .kernelSize(7)
        .numThreads(1);
  }

  /** Positions start to start + rows - 1 of a tensor (GoldenValues.Q, K or V) of a layer. */
  static Tensor tensor(int kind, int layer, long start, int rows) {
    Tensor tensor = Tensor.allocate(DType.F32, rows, kind == GoldenValues.Q ? HQ : HKV, D);
    GoldenValues values = new GoldenValues();
    for (int row = 0; row < rows; ++row) values.fill(tensor, kind, row, SEED, layer, start + row);
    return tensor;
  }

  static void prefill(Cache cache, int seq, int layer) {
    cache.prefill(
        seq,
        layer,
        tensor(GoldenValues.Q, layer, 0, S),
        tensor(GoldenValues.K, layer, 0, S),
        tensor(GoldenValues.V, layer, 0, S));
  }

  /** An open, prefilled sequence 0. */
  static Cache filled() {
    Cache cache = new Cache(config().build());
    cache.open(0);
    for (int layer = 0; layer < 2; ++layer) prefill(cache, 0, layer);
    return cache;
  }

  /** One row of sequence 0 at a position, with out. */
  static DecodeArgs step(int layer, long position) {
    return new DecodeArgs(1)
        .row(0, 0, position)
        .q(tensor(GoldenValues.Q, layer, position, 1))
        .k(tensor(GoldenValues.K, layer, position, 1))
        .v(tensor(GoldenValues.V, layer, position, 1));
  }

  static Tensor out(int rows) {
    return Tensor.allocate(DType.F32, rows, HQ, D);
  }

  static float[] floats(Tensor tensor) {
    FloatBuffer buffer = tensor.floats();
    float[] copy = new float[buffer.remaining()];
    buffer.get(copy);
    return copy;
  }

  /** The call is refused with a status and a text that has all the words. */
  static void refused(Status status, Executable call, String... words) {
    RkvException e = assertThrows(RkvException.class, call);
    assertEquals(status, e.status(), e.getMessage());
    for (String word : words) assertTrue(e.getMessage().contains(word), e.getMessage());
  }
}
