package ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import com.sun.management.ThreadMXBean;
import io.github.librkv.Cache;
import io.github.librkv.CacheConfig;
import io.github.librkv.DType;
import io.github.librkv.DecodeArgs;
import io.github.librkv.Rkv;
import io.github.librkv.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * An engine that keeps K and V in heap arrays, one float[] a layer, hands them to librkv as they
 * are: a critical call (JDK 22) passes the address of an array for the time of the call. No array
 * is copied; the garbage collector waits while such a call runs, so a prompt goes in layer by
 * layer.
 *
 * <p>The same steps through direct buffers and JNI must give the same bits.
 */
final class HeapArrays {
  private static final int LAYERS = 2;
  private static final int HQ = 8;
  private static final int HKV = 2;
  private static final int D = 64;
  private static final int S = 3000;
  private static final int STEPS = 40;
  private static final long BUDGET = 256;

  private static final Linker LINKER = Linker.nativeLinker();

  // Loads the libraries out of the jar; their functions are then this class loader's.
  private static final String VERSION = Rkv.version();
  private static final SymbolLookup LIBRARY = SymbolLookup.loaderLookup();

  private static final MethodHandle CREATE =
      function("rkv_cache_create", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle OPEN =
      function("rkv_sequence_open", JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
  private static final MethodHandle DESTROY =
      LINKER.downcallHandle(
          LIBRARY.find("rkv_cache_destroy").orElseThrow(), FunctionDescriptor.ofVoid(ADDRESS));
  // The address of a heap array can be an argument and nothing else, so it does not stand in a
  // struct; bindings/java/native/heap.h puts it there.
  private static final MethodHandle PREFILL =
      critical("rkv_heap_prefill", ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle DECODE =
      critical("rkv_heap_decode", ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);

  private HeapArrays() {}

  private static MethodHandle function(String name, MemoryLayout result, MemoryLayout... types) {
    return LINKER.downcallHandle(
        LIBRARY.find(name).orElseThrow(), FunctionDescriptor.of(result, types));
  }

  private static MethodHandle critical(String name, MemoryLayout... types) {
    return LINKER.downcallHandle(
        LIBRARY.find(name).orElseThrow(),
        FunctionDescriptor.of(JAVA_INT, types),
        Linker.Option.critical(true));
  }

  /** The engine's arrays: q [S][Hq * D] and so on of the prompt and the steps behind it. */
  private record Arrays3(float[] q, float[] k, float[] v) {
    static Arrays3 random(int layer) {
      SplittableRandom random = new SplittableRandom(layer);
      int rows = S + STEPS;
      return new Arrays3(
          floats(random, rows * HQ * D),
          floats(random, rows * HKV * D),
          floats(random, rows * HKV * D));
    }

    private static float[] floats(SplittableRandom random, int count) {
      float[] out = new float[count];
      for (int i = 0; i < count; ++i) out[i] = (float) random.nextGaussian();
      return out;
    }
  }

  private static void check(int status, MemorySegment error) {
    if (status != 0) throw new IllegalStateException(Structs.text(error));
  }

  private static MemorySegment part(float[] array, int rows, int width) {
    return MemorySegment.ofArray(array).asSlice(4L * rows * width);
  }

  /**
   * Outputs of all steps, [steps][layers][Hq * D], from heap arrays; bytes[0]: what the calls made.
   */
  private static float[][][] fromHeap(Arrays3[] layers, long[] bytes) throws Throwable {
    float[][][] out = new float[STEPS][LAYERS][HQ * D];
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment error = Structs.make(arena, Structs.ERROR);
      MemorySegment config = Structs.make(arena, Structs.CONFIG);
      Structs.set(config, Structs.CONFIG, "layers", LAYERS);
      Structs.set(config, Structs.CONFIG, "q_heads", HQ);
      Structs.set(config, Structs.CONFIG, "kv_heads", HKV);
      Structs.set(config, Structs.CONFIG, "head_dim", D);
      Structs.set(config, Structs.CONFIG, "kv_dtype", 1);
      Structs.set(config, Structs.CONFIG, "max_prompt_tokens", S);
      Structs.set(config, Structs.CONFIG, "max_new_tokens", STEPS);
      Structs.set(config, Structs.CONFIG, "token_budget", BUDGET);
      MemorySegment place = arena.allocate(ADDRESS);
      check((int) CREATE.invokeExact(config, MemorySegment.NULL, place, error), error);
      MemorySegment cache = place.get(ADDRESS, 0);
      try {
        check((int) OPEN.invokeExact(cache, 0, MemorySegment.NULL, error), error);
        MemorySegment prompt = Structs.make(arena, Structs.PREFILL);
        Structs.set(prompt, Structs.PREFILL, "prompt_tokens", S);
        Structs.set(prompt, Structs.PREFILL, "q", Structs.tensor(arena, S, HQ, D));
        Structs.set(prompt, Structs.PREFILL, "k", Structs.tensor(arena, S, HKV, D));
        Structs.set(prompt, Structs.PREFILL, "v", Structs.tensor(arena, S, HKV, D));
        MemorySegment seq = arena.allocateFrom(JAVA_INT, 0);
        MemorySegment position = arena.allocate(JAVA_LONG);
        MemorySegment step = Structs.make(arena, Structs.DECODE);
        Structs.set(step, Structs.DECODE, "rows", 1);
        Structs.set(step, Structs.DECODE, "seq", seq);
        Structs.set(step, Structs.DECODE, "positions", position);
        Structs.set(step, Structs.DECODE, "q", Structs.tensor(arena, 1, HQ, D));
        Structs.set(step, Structs.DECODE, "k", Structs.tensor(arena, 1, HKV, D));
        Structs.set(step, Structs.DECODE, "v", Structs.tensor(arena, 1, HKV, D));
        Structs.set(step, Structs.DECODE, "out", Structs.tensor(arena, 1, HQ, D));
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int layer = 0; layer < LAYERS; ++layer) {
          Arrays3 a = layers[layer];
          Structs.set(prompt, Structs.PREFILL, "layer", layer);
          int status =
              (int)
                  PREFILL.invokeExact(
                      cache,
                      prompt,
                      MemorySegment.ofArray(a.q),
                      MemorySegment.ofArray(a.k),
                      MemorySegment.ofArray(a.v),
                      error);
          check(status, error);
        }
        for (int i = 0; i < STEPS; ++i) {
          position.set(JAVA_LONG, 0, S + i);
          for (int layer = 0; layer < LAYERS; ++layer) {
            Arrays3 a = layers[layer];
            Structs.set(step, Structs.DECODE, "layer", layer);
            int status =
                (int)
                    DECODE.invokeExact(
                        cache,
                        step,
                        part(a.q, S + i, HQ * D),
                        part(a.k, S + i, HKV * D),
                        part(a.v, S + i, HKV * D),
                        MemorySegment.ofArray(out[i][layer]),
                        error);
            check(status, error);
          }
        }
        bytes[0] = threads.getCurrentThreadAllocatedBytes() - before;
      } finally {
        DESTROY.invokeExact(cache);
      }
    }
    return out;
  }

  private static Tensor direct(float[] array, long heads) {
    Tensor tensor = Tensor.allocate(DType.F32, S + STEPS, heads, D);
    tensor.floats().put(array);
    return tensor;
  }

  /** The same through the binding. */
  private static float[][][] fromDirect(Arrays3[] layers) {
    float[][][] out = new float[STEPS][LAYERS][HQ * D];
    CacheConfig config =
        CacheConfig.builder()
            .layers(LAYERS)
            .qHeads(HQ)
            .kvHeads(HKV)
            .headDim(D)
            .kvDtype(DType.F32)
            .maxPromptTokens(S)
            .maxNewTokens(STEPS)
            .tokenBudget(BUDGET)
            .build();
    try (Cache cache = new Cache(config)) {
      cache.open(0);
      Tensor result = Tensor.allocate(DType.F32, 1, HQ, D);
      DecodeArgs step = new DecodeArgs(1).out(result);
      for (int layer = 0; layer < LAYERS; ++layer) {
        Tensor q = direct(layers[layer].q, HQ);
        Tensor k = direct(layers[layer].k, HKV);
        Tensor v = direct(layers[layer].v, HKV);
        cache.prefill(0, layer, q.rows(0, S), k.rows(0, S), v.rows(0, S));
        for (int i = 0; i < STEPS; ++i) {
          step.row(0, 0, S + i);
          step.q(q.rows(S + i, S + i + 1)).k(k.rows(S + i, S + i + 1)).v(v.rows(S + i, S + i + 1));
          cache.decode(layer, step);
          result.floats().get(out[i][layer]);
        }
      }
    }
    return out;
  }

  public static void main(String[] args) throws Throwable {
    Arrays3[] layers = new Arrays3[LAYERS];
    Arrays.setAll(layers, Arrays3::random);
    long[] bytes = new long[1];
    float[][][] heap = fromHeap(layers, bytes); // also warms up the call sites
    heap = fromHeap(layers, bytes);
    float[][][] direct = fromDirect(layers);
    boolean same = Arrays.deepEquals(heap, direct);
    long copies = 4L * LAYERS * 2 * S * HKV * D;
    System.out.printf(
        "librkv %s, Java %d: %d steps of %d layers from float[], bits as from direct buffers: %s;"
            + " %d KB allocated in the calls, K and V are %d KB%n",
        VERSION, Runtime.version().feature(), STEPS, LAYERS, same, bytes[0] >> 10, copies >> 10);
    boolean lean = bytes[0] < copies / 4;
    if (!same || !lean) System.exit(1);
  }
}
