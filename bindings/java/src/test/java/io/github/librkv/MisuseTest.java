package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import org.junit.jupiter.api.Test;

/** Every mistake is an exception with a text that names it. */
class MisuseTest {
  private static ByteBuffer direct(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  @Test
  void closingTwiceIsNothing() {
    Cache cache = Rig.filled();
    assertFalse(cache.closed());
    cache.close();
    cache.close();
    assertTrue(cache.closed());
  }

  @Test
  void everyCallOnAClosedCacheIsRefused() {
    Cache cache = Rig.filled();
    DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1)).selection(cache.newSelection(1));
    Tensor q = Rig.tensor(GoldenValues.Q, 0, 0, Rig.S);
    ByteBuffer bytes = direct(16);
    cache.close();
    Rig.refused(Status.BAD_STATE, () -> cache.open(1), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.closeSequence(0), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.rewind(0, Rig.S), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.fork(0, 1), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.prefill(0, 0, q, q, q), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.decodeSelect(0, args), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.attend(0, args), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.decode(0, args), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.audit(0, args), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.stats(0, 0), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.keptPositions(0, 0), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.exportLayer(0, 0, 0, 1), "closed");
    Rig.refused(Status.BAD_STATE, () -> cache.importLayer(0, 0, 0, 1, bytes), "closed");
    try (Cache next = Rig.filled()) {
      next.decode(0, args); // the arguments belong to no cache and are still good
    }
  }

  @Test
  void wrongDtypeIsTheLibrarysToRefuse() {
    try (Cache cache = Rig.filled()) {
      Tensor half = Tensor.allocate(DType.F16, 1, Rig.HKV, Rig.D);
      DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1)).k(half);
      Rig.refused(Status.INVALID_ARGUMENT, () -> cache.decode(0, args), "k", "F16");
      assertEquals(Rig.S, cache.stats(0, 0).position(), "nothing changed");
    }
    Rig.refused(
        Status.INVALID_ARGUMENT,
        () -> Tensor.of(DType.F16, direct(64).asFloatBuffer(), 4),
        "F16",
        "FloatBuffer");
    Rig.refused(
        Status.INVALID_ARGUMENT,
        () -> Tensor.of(DType.F32, direct(64).asIntBuffer(), 4),
        "IntBuffer");
  }

  @Test
  void wrongBuffersAreNamed() {
    Rig.refused(
        Status.INVALID_ARGUMENT, () -> Tensor.of(DType.F32, FloatBuffer.allocate(8), 8), "heap");
    Rig.refused(
        Status.INVALID_ARGUMENT,
        () -> Tensor.of(DType.F32, ByteBuffer.allocateDirect(32), 8),
        "BIG_ENDIAN",
        "nativeOrder");
    Rig.refused(
        Status.BUFFER_TOO_SMALL, () -> Tensor.of(DType.F32, direct(32), 9), "32 bytes", "36");
    DecodeArgs args = Rig.step(0, Rig.S);
    Tensor readOnly =
        Tensor.of(
            DType.F32, direct(1024).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), 1, 4, 16);
    Rig.refused(Status.INVALID_ARGUMENT, () -> args.out(readOnly), "out", "read-only");
    Rig.refused(Status.INVALID_ARGUMENT, () -> args.lse(FloatBuffer.allocate(4)), "lse", "heap");
    Rig.refused(
        Status.INVALID_ARGUMENT,
        () -> args.rowStatus(ByteBuffer.allocateDirect(4).asIntBuffer()),
        "row_status",
        "BIG_ENDIAN");
    Rig.refused(
        Status.INVALID_ARGUMENT,
        () -> Paging.byBlocks(16, 1, 1, LongBuffer.allocate(1), LongBuffer.allocate(1)),
        "k_blocks");
    Rig.refused(
        Status.INVALID_ARGUMENT, () -> Buffers.of(ByteBuffer.allocate(64), direct(64)), "storage");
  }

  @Test
  void positionAndLimitAreHonoured() {
    ByteBuffer buffer = direct(64);
    buffer.position(16).limit(48);
    Rig.refused(Status.BUFFER_TOO_SMALL, () -> Tensor.of(DType.F32, buffer, 9), "32 bytes");
    Tensor eight = Tensor.of(DType.F32, buffer, 8);
    buffer.clear();
    eight.floats().put(0, 5f);
    assertEquals(5f, buffer.getFloat(16), "the view began at the position of then");
  }

  @Test
  void stridesMayNotLeaveTheBuffer() {
    ByteBuffer buffer = direct(400); // 100 elements
    long[] shape = {10, 10};
    assertEquals(10, Tensor.of(DType.F32, buffer, 0, shape, new long[] {10, 1}).stride(0));
    assertEquals(-10, Tensor.of(DType.F32, buffer, 90, shape, new long[] {-10, 1}).stride(0));
    assertEquals(0, Tensor.of(DType.F32, buffer, 0, shape, new long[] {0, 0}).stride(1));
    Tensor.of(DType.F32, buffer, 100, new long[] {0, 10}, new long[] {1000, 1000});
    long[][] wrong = {{11, 1}, {-10, 1}, {10, 2}, {Long.MAX_VALUE, 1}, {Long.MIN_VALUE, 1}};
    for (long[] strides : wrong) {
      assertThrows(
          RkvException.class,
          () -> Tensor.of(DType.F32, buffer, 0, shape, strides),
          strides[0] + "");
    }
    for (long offset : new long[] {1, -1, 101, Long.MAX_VALUE, Long.MIN_VALUE}) {
      assertThrows(
          RkvException.class,
          () -> Tensor.of(DType.F32, buffer, offset, shape, new long[] {10, 1}),
          offset + "");
    }
    assertThrows(RkvException.class, () -> Tensor.of(DType.F32, buffer, Long.MAX_VALUE, 8, 8));
    assertThrows(RkvException.class, () -> Tensor.of(DType.F32, buffer, -1, 8));
    assertThrows(RkvException.class, () -> Tensor.of(DType.F32, buffer, 1, 1, 1, 1, 1, 1, 1));
    assertThrows(RkvException.class, () -> Tensor.of(DType.F32, buffer, 0, shape, new long[] {1}));
    Tensor whole = Tensor.of(DType.F32, buffer, 10, 10);
    assertEquals(3, whole.rows(4, 7).shape(0));
    assertEquals(0, whole.rows(10, 10).shape(0));
    for (long[] part : new long[][] {{-1, 2}, {3, 2}, {0, 11}, {Long.MIN_VALUE, Long.MAX_VALUE}}) {
      assertThrows(RkvException.class, () -> whole.rows(part[0], part[1]), part[0] + "");
    }
    FloatBuffer factors = direct(8).asFloatBuffer();
    Rig.refused(Status.BUFFER_TOO_SMALL, () -> whole.withScale(factors, 1, 0), "8 bytes");
    assertThrows(RkvException.class, () -> whole.withScale(factors, 0));
  }

  @Test
  void shortOutputsAreNamedBeforeTheyAreWritten() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1));
      Rig.refused(
          Status.BUFFER_TOO_SMALL,
          () -> cache.decode(0, args.lse(direct(12).asFloatBuffer())),
          "lse",
          "12 bytes",
          "16");
      args.lse(null).rowStatus(direct(0).asIntBuffer());
      Rig.refused(Status.BUFFER_TOO_SMALL, () -> cache.decode(0, args), "row_status");
      args.rowStatus(null);
      long capacity = cache.memory().selectionCapacity();
      IntBuffer counts = direct(8).asIntBuffer();
      IntBuffer lists = direct((int) (8 * capacity - 4)).asIntBuffer();
      args.selection(Selection.of(Selection.Space.LIVE_ROW, Rig.HKV, capacity, lists, counts));
      Rig.refused(Status.INVALID_ARGUMENT, () -> cache.decode(0, args), "selection.indices");
      args.selection(Selection.allocate(1, Rig.HKV, capacity - 1));
      Rig.refused(Status.BUFFER_TOO_SMALL, () -> cache.decode(0, args), "capacity");
      args.selection(Selection.allocate(1, Rig.HKV + 1, capacity));
      Rig.refused(Status.INVALID_ARGUMENT, () -> cache.decode(0, args), "KV heads");
      args.selection(null).paging(Paging.byTable(16, 8, 8, direct(28).asIntBuffer()));
      Rig.refused(Status.INVALID_ARGUMENT, () -> cache.decode(0, args), "block_table");
      args.paging(null);
      cache.decode(0, args);
    }
    CacheConfig config = Rig.config().build();
    Buffers small = Buffers.of(direct(192).alignedSlice(64), direct(192).alignedSlice(64));
    Rig.refused(Status.BUFFER_TOO_SMALL, () -> new Cache(config, small), "storage");
    Rig.refused( // and not held by the cache that was never made
        Status.BUFFER_TOO_SMALL, () -> new Cache(config, small), "storage");
  }

  @Test
  void wrongShapesAndMissingTensors() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1));
      args.q(Rig.tensor(GoldenValues.Q, 0, Rig.S, 2));
      Rig.refused(Status.INVALID_ARGUMENT, () -> cache.decode(0, args), "q");
      args.q(null);
      Rig.refused(Status.INVALID_ARGUMENT, () -> cache.decode(0, args), "q");
      assertThrows(NullPointerException.class, () -> new Cache(null));
      assertThrows(NullPointerException.class, () -> cache.decode(0, null));
      assertEquals(
          "k",
          assertThrows(NullPointerException.class, () -> cache.prefill(1, 0, null, null, null))
              .getMessage());
      assertThrows(NullPointerException.class, () -> cache.open(1, null));
      cache.open(1); // and the cache is as it was
      Rig.refused(
          Status.INVALID_ARGUMENT, () -> cache.prefill(1, 0, 10, 10, null, null, null), "k");
      Rig.refused(
          Status.BAD_STATE, () -> cache.decode(0, Rig.step(0, Rig.S + 3).out(Rig.out(1))), "303");
      assertThrows(IndexOutOfBoundsException.class, () -> args.row(1, 0, 0));
      Rig.refused(Status.INVALID_ARGUMENT, () -> args.rows(2), "rows");
    }
  }

  @Test
  void emptyBatchIsFine() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs none =
          new DecodeArgs(0)
              .q(Tensor.allocate(DType.F32, 0, Rig.HQ, Rig.D))
              .k(Tensor.allocate(DType.F32, 0, Rig.HKV, Rig.D))
              .v(Tensor.allocate(DType.F32, 0, Rig.HKV, Rig.D))
              .out(Rig.out(0));
      cache.decode(0, none);
      assertTrue(Double.isNaN(cache.audit(0, none).massMean()));
      assertEquals(Rig.S, cache.stats(0, 0).position());
    }
  }

  @Test
  void absurdSizesAreRefused() {
    CacheConfig.Builder huge = Rig.config().maxPromptTokens(Long.MAX_VALUE);
    assertThrows(RkvException.class, () -> new Cache(huge.build()));
    assertThrows(RkvException.class, () -> CacheMemory.of(huge.build()));
    CacheConfig.Builder big =
        Rig.config().maxPromptTokens(1L << 30).maxSequences(1 << 20).layers(256).headDim(256);
    assertThrows(RkvException.class, () -> new Cache(big.build()));
    assertThrows(RkvException.class, () -> new Cache(Rig.config().layers(-1).build()));
    assertThrows(RkvException.class, () -> new Cache(Rig.config().headDim(1 << 30).build()));
    Rig.refused(
        Status.INVALID_ARGUMENT,
        () -> new Cache(Rig.config().denseLayers(256).build()),
        "dense_layers",
        "256");
    assertThrows(RkvException.class, () -> Plan.of(Rig.config().build(), -5));
    assertThrows(RkvException.class, () -> Plan.of(Rig.config().build(), Long.MIN_VALUE));
    assertThrows(
        RkvException.class,
        () -> Plan.of(Rig.config().compressionRatio(Double.NaN).tokenBudget(0).build(), 100));
    assertThrows(RkvException.class, () -> new DecodeArgs(Integer.MAX_VALUE));
    assertThrows(RkvException.class, () -> new DecodeArgs(-1));
    assertThrows(RkvException.class, () -> Selection.allocate(1 << 30, 1 << 30, 1 << 30));
    assertThrows(RkvException.class, () -> Selection.allocate(-1, 1, 1));
    assertThrows(RkvException.class, () -> Tensor.allocate(DType.F32, 1L << 40));
    assertThrows(RkvException.class, () -> Tensor.allocate(DType.F32, 1L << 62, 1L << 62));
    assertThrows(RkvException.class, () -> Buffers.atAddress(0, -1, 0, -1));
    try (Cache cache = Rig.filled()) {
      for (int value : new int[] {-1, 2, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
        assertThrows(RkvException.class, () -> cache.open(value));
        assertThrows(RkvException.class, () -> cache.closeSequence(value));
        assertThrows(RkvException.class, () -> cache.stats(0, value));
        assertThrows(RkvException.class, () -> cache.keptPositions(value, 0));
        assertThrows(RkvException.class, () -> cache.rewind(0, value));
        DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1));
        assertThrows(RkvException.class, () -> cache.decode(value, args));
      }
      assertThrows(RkvException.class, () -> cache.rewind(0, Long.MAX_VALUE));
      DecodeArgs far = Rig.step(0, Rig.S).out(Rig.out(1)).row(0, 0, Long.MAX_VALUE);
      assertThrows(RkvException.class, () -> cache.decode(0, far));
    }
  }

  @Test
  void statusesHaveTheLibrarysNames() {
    for (Status status : Status.values()) {
      if (status != Status.UNKNOWN) {
        assertEquals(status.name(), Native.rkv_status_name(status.ordinal()));
      }
    }
    assertEquals("UNKNOWN", Native.rkv_status_name(Status.UNKNOWN.ordinal()));
    assertEquals(Status.UNKNOWN, Status.of(99));
    assertEquals(Status.UNKNOWN, Status.of(-1));
    RkvException e = new RkvException(99, 5, "text");
    assertEquals(99, e.statusCode());
    assertEquals(5, e.nativeCode());
  }
}
