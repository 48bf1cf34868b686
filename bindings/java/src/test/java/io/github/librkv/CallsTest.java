package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import org.junit.jupiter.api.Test;

/** What each call does, as far as the binding has a part in it. */
class CallsTest {
  private static float[] decode(Cache cache, int layer, DecodeArgs args) {
    Tensor out = Rig.out(1);
    cache.decode(layer, args.out(out));
    return Rig.floats(out);
  }

  /** Appends, then attends to all live rows. */
  private static float[] all(Cache cache, DecodeArgs args) {
    Tensor out = Rig.out(1);
    cache.decode(0, args.out(out));
    cache.attend(0, args);
    return Rig.floats(out);
  }

  @Test
  void planFollowsBudgetAndRequest() {
    CacheConfig config = Rig.config().build();
    Plan plan = Plan.of(config, Rig.S);
    assertEquals(96, plan.tokenBudget());
    assertEquals((Rig.S + 16) / 96.0, plan.ratio(), 1e-12);
    assertEquals(
        64, Plan.of(config, SequenceOptions.DEFAULT.withTokenBudget(64), Rig.S).tokenBudget());
    assertEquals(
        4, Plan.of(config, SequenceOptions.DEFAULT.withCompressionRatio(4), Rig.S).ratio(), 1e-12);
    assertTrue(Plan.of(config, 20).dense());
  }

  @Test
  void decodeIsSelectThenAttend() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs args = Rig.step(1, Rig.S);
      float[] fused = decode(cache, 1, args);
      Selection selection = cache.newSelection(1);
      Tensor out = Rig.out(1);
      FloatBuffer lse =
          ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder()).asFloatBuffer();
      cache.decodeSelect(1, args.selection(selection));
      assertTrue(selection.count(0, 1) > 0);
      assertTrue(selection.count(0, 1) <= selection.capacity());
      cache.attend(1, args.out(out).lse(lse));
      assertArrayEquals(fused, Rig.floats(out));
      assertTrue(lse.get(3) > 0);
      assertEquals(0, lse.get(4));
      cache.attend(1, args.selection(null));
      assertFalse(java.util.Arrays.equals(fused, Rig.floats(out)), "all live rows");
    }
  }

  @Test
  void chunkedPromptGivesTheSameBits() {
    try (Cache whole = Rig.filled();
        Cache chunked = new Cache(Rig.config().build())) {
      chunked.open(0);
      chunked.prefill(0, 1, 250, Rig.S, Rig.tensor(GoldenValues.Q, 1, 250, 40), null, null);
      chunked.prefill(
          0,
          1,
          290,
          Rig.S,
          Rig.tensor(GoldenValues.Q, 1, 290, 10),
          Rig.tensor(GoldenValues.K, 1, 0, Rig.S),
          Rig.tensor(GoldenValues.V, 1, 0, Rig.S));
      assertArrayEquals(whole.keptPositions(0, 1), chunked.keptPositions(0, 1));
      DecodeArgs args = Rig.step(1, Rig.S);
      assertArrayEquals(decode(whole, 1, args), decode(chunked, 1, args));
    }
  }

  @Test
  void anyLayoutGivesTheSameBits() {
    Tensor k = Rig.tensor(GoldenValues.K, 0, 0, Rig.S);
    float[] rows = Rig.floats(k);
    // Channel-major, from the last token to the first, behind a gap.
    ByteBuffer memory = ByteBuffer.allocateDirect(4 * (5 + rows.length));
    FloatBuffer turned = memory.order(ByteOrder.nativeOrder()).asFloatBuffer();
    int width = Rig.HKV * Rig.D;
    for (int s = 0; s < Rig.S; ++s) {
      for (int c = 0; c < width; ++c) {
        turned.put(5 + c * Rig.S + (Rig.S - 1 - s), rows[s * width + c]);
      }
    }
    Tensor strided =
        Tensor.of(
            DType.F32,
            turned.position(2),
            3 + Rig.S - 1,
            new long[] {Rig.S, Rig.HKV, Rig.D},
            new long[] {-1, (long) Rig.D * Rig.S, Rig.S});
    try (Cache first = Rig.filled();
        Cache second = new Cache(Rig.config().build())) {
      second.open(0);
      second.prefill(
          0,
          0,
          Rig.tensor(GoldenValues.Q, 0, 0, Rig.S),
          strided,
          Rig.tensor(GoldenValues.V, 0, 0, Rig.S));
      assertArrayEquals(first.keptPositions(0, 0), second.keptPositions(0, 0));
      DecodeArgs args = Rig.step(0, Rig.S);
      assertArrayEquals(decode(first, 0, args), decode(second, 0, args));
    }
  }

  @Test
  void batchHasTheBitsOfOneRowAtATime() {
    try (Cache cache = Rig.filled()) {
      cache.open(1);
      Rig.prefill(cache, 1, 0);
      float[] alone = decode(cache, 0, Rig.step(0, Rig.S));
      Tensor q = Rig.tensor(GoldenValues.Q, 0, Rig.S, 2);
      Tensor k = Rig.tensor(GoldenValues.K, 0, Rig.S, 2);
      Tensor v = Rig.tensor(GoldenValues.V, 0, Rig.S, 2);
      Tensor out = Rig.out(2);
      DecodeArgs args = new DecodeArgs(3).rows(2).q(q).k(k).v(v).out(out);
      args.row(0, 1, Rig.S).row(1, -1, 0);
      cache.decode(0, args);
      float[] both = Rig.floats(out);
      assertArrayEquals(alone, java.util.Arrays.copyOf(both, alone.length));
      for (int i = alone.length; i < both.length; ++i) assertEquals(0, both[i], "padding row");
      args.rows(1).row(0, 1, Rig.S);
      args.q(q.rows(0, 1)).k(k.rows(0, 1)).v(v.rows(0, 1)).out(out.rows(1, 2));
      cache.decode(0, args);
      both = Rig.floats(out);
      assertArrayEquals(alone, java.util.Arrays.copyOfRange(both, alone.length, both.length));
    }
  }

  @Test
  void statsKeptRewindAudit() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs args = Rig.step(0, Rig.S);
      float[] first = decode(cache, 0, args);
      SequenceStats stats = cache.stats(0, 0);
      assertEquals(Rig.S + 1, stats.position());
      assertEquals(1, stats.generated());
      assertEquals(Plan.of(cache.config(), Rig.S), stats.plan());
      assertEquals(0, cache.stats(0, 1).generated());
      long[][] kept = cache.keptPositions(0, 0);
      assertEquals(Rig.HKV, kept.length);
      assertEquals(stats.kept() + 1, kept[1].length);
      assertEquals(Rig.S, kept[1][kept[1].length - 1]);
      AuditResult audit = cache.audit(0, args);
      assertEquals(1, audit.rows());
      assertTrue(audit.massMin() > 0 && audit.massMean() <= 1 + 1e-9);
      cache.rewind(0, Rig.S);
      assertEquals(Rig.S, cache.stats(0, 0).position());
      assertArrayEquals(first, decode(cache, 0, args));
      cache.closeSequence(0);
      Rig.refused(Status.BAD_STATE, () -> cache.stats(0, 0), "0");
    }
  }

  @Test
  void callerOwnedBuffersGiveTheSameBitsAndComeBack() {
    CacheConfig config = Rig.config().build();
    Buffers buffers = Buffers.allocate(CacheMemory.of(config));
    float[] own;
    try (Cache cache = Rig.filled()) {
      own = decode(cache, 0, Rig.step(0, Rig.S));
    }
    for (int round = 0; round < 2; ++round) {
      try (Cache cache = new Cache(config, buffers)) {
        Rig.refused(Status.BAD_STATE, () -> new Cache(config, buffers), "another cache");
        cache.open(0);
        Rig.prefill(cache, 0, 0);
        assertArrayEquals(own, decode(cache, 0, Rig.step(0, Rig.S)));
      }
    }
  }

  @Test
  void storageIsReadWhereItLies() {
    try (Cache cache = Rig.filled()) {
      DecodeArgs args = Rig.step(0, Rig.S);
      Tensor v = Rig.tensor(GoldenValues.V, 0, Rig.S, 1);
      float[] before = all(cache, args.v(v));
      v.floats().put(0, 1000f); // after the view was made and set
      float[] after = all(cache, args);
      assertNotEquals(before[0], after[0]);
      Tensor byAddress =
          Tensor.atAddress(
              DType.F32,
              Direct.address("v", v.buffer(), false),
              new long[] {1, Rig.HKV, Rig.D},
              new long[] {Rig.HKV * Rig.D, Rig.D, 1});
      assertArrayEquals(after, all(cache, args.v(byAddress)));
      java.lang.ref.Reference.reachabilityFence(v);
    }
  }

  @Test
  void halfTypes() {
    for (DType dtype : new DType[] {DType.F16, DType.BF16}) {
      try (Cache cache = new Cache(Rig.config().kvDtype(dtype).queryDtype(DType.F32).build())) {
        cache.open(0);
        GoldenValues values = new GoldenValues();
        Tensor k = Tensor.allocate(dtype, Rig.S, Rig.HKV, Rig.D);
        for (int s = 0; s < Rig.S; ++s) values.fill(k, GoldenValues.K, s, 1, 0, s);
        Tensor shorts =
            Tensor.of(dtype, ((ByteBuffer) k.buffer()).asShortBuffer(), Rig.S, Rig.HKV, Rig.D);
        cache.prefill(0, 0, Rig.tensor(GoldenValues.Q, 0, 0, Rig.S), k, shorts);
        assertTrue(cache.stats(0, 0).kept() < Rig.S);
      }
    }
  }

  @Test
  void whatIsNotServedYetIsRefusedByTheLibrary() {
    try (Cache cache = Rig.filled()) {
      Rig.refused(Status.UNSUPPORTED, () -> cache.fork(0, 1), "");
      Rig.refused(Status.UNSUPPORTED, () -> cache.exportLayer(0, 0, 0, Rig.HKV), "");
      cache.open(1);
      ByteBuffer bytes = ByteBuffer.allocateDirect(64);
      Rig.refused(Status.UNSUPPORTED, () -> cache.importLayer(1, 0, 0, Rig.HKV, bytes), "");
      var table = Tensor.allocate(DType.F32, 8).buffer();
      var blocks = ((ByteBuffer) table).asIntBuffer();
      DecodeArgs paged =
          Rig.step(0, Rig.S).out(Rig.out(1)).paging(Paging.byTable(16, 8, 8, blocks));
      Rig.refused(Status.UNSUPPORTED, () -> cache.decode(0, paged), "paging");
      FloatBuffer factors = Tensor.allocate(DType.F32, Rig.HKV).floats();
      Tensor scaled = Rig.tensor(GoldenValues.K, 0, Rig.S, 1).withScale(factors, 0, 1, 0);
      DecodeArgs quantised = Rig.step(0, Rig.S).out(Rig.out(1)).k(scaled);
      Rig.refused(Status.UNSUPPORTED, () -> cache.decode(0, quantised), "scale");
      quantised.k(scaled.withScaleAtAddress(0, 0, 0, 0));
      cache.decode(0, quantised); // none
      CacheConfig indexed = Rig.config().storage(CacheConfig.Storage.INDEXED).build();
      Rig.refused(Status.UNSUPPORTED, () -> new Cache(indexed), "storage");
    }
  }

  @Test
  void reportsOfTheLibrary() {
    assertEquals(System.getProperty("rkv.pom.version"), Rkv.version());
    assertEquals(Native.compiled_abi_version(), Rkv.abiVersion());
    assertEquals(1, Rkv.deviceCount(CacheConfig.DeviceType.CPU));
    try (Cache cache = Rig.filled()) {
      assertSame(cache.config(), cache.config());
      assertEquals(CacheMemory.of(cache.config()), cache.memory());
      assertEquals(0, cache.memory().storageBytes() % cache.memory().alignment());
    }
  }
}
