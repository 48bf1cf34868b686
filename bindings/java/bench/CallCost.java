import io.github.librkv.Cache;
import io.github.librkv.CacheConfig;
import io.github.librkv.DType;
import io.github.librkv.DecodeArgs;
import io.github.librkv.Rkv;
import io.github.librkv.Tensor;
import java.util.Arrays;

/**
 * Nanoseconds of a call: medians of rounds after warm-up. The cases are the same in every language.
 */
final class CallCost {
  private static final int LAYERS = 32;
  private static final int D = 8;
  private static final int PROMPT = 8;
  private static final int ROUNDS = 31;
  private static final int WARM_UP = 10;

  private CallCost() {}

  private static long median(int calls, Runnable body) {
    long[] rounds = new long[ROUNDS];
    for (int round = -WARM_UP; round < ROUNDS; ++round) {
      long start = System.nanoTime();
      for (int call = 0; call < calls; ++call) body.run();
      if (round >= 0) rounds[round] = (System.nanoTime() - start) / calls;
    }
    Arrays.sort(rounds);
    return rounds[ROUNDS / 2];
  }

  private static Tensor ones(int rows) {
    Tensor tensor = Tensor.allocate(DType.F32, rows, 1, D);
    for (int i = 0; i < rows * D; ++i) tensor.floats().put(i, 1f);
    return tensor;
  }

  public static void main(String[] args) {
    CacheConfig config =
        CacheConfig.builder()
            .layers(LAYERS)
            .qHeads(1)
            .kvHeads(1)
            .headDim(D)
            .kvDtype(DType.F32)
            .numThreads(1)
            .maxPromptTokens(PROMPT)
            .maxNewTokens(8)
            .tokenBudget(64)
            .build();
    try (Cache cache = new Cache(config)) {
      cache.open(0);
      Tensor prompt = ones(PROMPT);
      for (int layer = 0; layer < LAYERS; ++layer) cache.prefill(0, layer, prompt, prompt, prompt);
      Tensor row = ones(1);
      DecodeArgs step = new DecodeArgs(1).q(row).k(row).v(row).out(ones(1));
      step.row(0, 0, PROMPT);
      long trivial = median(50_000, () -> Rkv.deviceCount(CacheConfig.DeviceType.CPU));
      long decode = median(20_000, () -> cache.decode(0, step));
      long token =
          median(
              1_000,
              () -> {
                step.row(0, 0, PROMPT);
                for (int layer = 0; layer < LAYERS; ++layer) cache.decode(layer, step);
              });
      System.out.printf(
          "calls java: trivial %d ns, decode %d ns, token %d ns%n", trivial, decode, token);
    }
  }
}
