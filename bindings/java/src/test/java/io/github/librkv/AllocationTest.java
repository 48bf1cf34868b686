package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** K and V are never copied: what a call allocates does not know their size. */
class AllocationTest {
  private static final com.sun.management.ThreadMXBean THREADS =
      (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static long heapBytes() {
    return THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
  }

  private static long directBytes() {
    long bytes = 0;
    for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
      if (pool.getName().equals("direct")) bytes += pool.getTotalCapacity();
    }
    return bytes;
  }

  @Test
  void decodeAllocatesNothing() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1));
      Selection selection = cache.newSelection(1);
      args.selection(selection);
      for (int i = 0; i < 3000; ++i) cache.decode(0, args.row(0, 0, Rig.S));
      long calls = 2000;
      long direct = directBytes();
      long before = heapBytes();
      for (int i = 0; i < calls; ++i) cache.decode(0, args.row(0, 0, Rig.S));
      long bytes = heapBytes() - before;
      assertTrue(bytes < 2 * calls, bytes + " bytes in " + calls + " calls");
      assertEquals(direct, directBytes());
    }
  }

  @Test
  void prefillAllocatesTheSameForAnyPrompt() {
    int large = 20_000; // 2.5 MB each of K and V
    long[] heap = new long[2];
    long[] direct = new long[2];
    int[] prompts = {100, large};
    CacheConfig config = Rig.config().maxPromptTokens(large).build();
    Tensor q = Rig.tensor(GoldenValues.Q, 0, 0, 40);
    for (int warm = 0; warm < 3; ++warm) {
      for (int i = 0; i < 2; ++i) {
        int s = prompts[i];
        Tensor k = Rig.tensor(GoldenValues.K, 0, 0, s);
        Tensor v = Rig.tensor(GoldenValues.V, 0, 0, s);
        try (Cache cache = new Cache(config)) {
          cache.open(0);
          long directBefore = directBytes();
          long before = heapBytes();
          cache.prefill(0, 0, s - 40, s, q, k, v);
          heap[i] = heapBytes() - before;
          direct[i] = directBytes() - directBefore;
        }
      }
    }
    assertTrue(heap[1] < 4096, heap[1] + " bytes on the heap");
    assertTrue(Math.abs(heap[1] - heap[0]) < 1024, heap[0] + " and " + heap[1]);
    assertTrue(direct[1] < 4096, direct[1] + " bytes of direct memory");
  }
}
