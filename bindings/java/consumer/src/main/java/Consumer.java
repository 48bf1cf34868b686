import io.github.librkv.CacheConfig;
import io.github.librkv.DType;
import io.github.librkv.Plan;
import io.github.librkv.Rkv;

/** Prints a plan. */
final class Consumer {
  private Consumer() {}

  public static void main(String[] args) {
    CacheConfig config =
        CacheConfig.builder()
            .headDim(64)
            .kvDtype(DType.F32)
            .tokenBudget(256)
            .maxNewTokens(64)
            .build();
    System.out.println("librkv " + Rkv.version() + ": " + Plan.of(config, 2000));
  }
}
