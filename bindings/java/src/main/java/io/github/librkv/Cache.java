package io.github.librkv;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * The compressed K and V of up to maxSequences sequences in all layers.
 *
 * <p>One call at a time: a call that meets another one of the same cache is refused with {@link
 * Status#BAD_STATE} and changes nothing; {@link #stats} and {@link #keptPositions} may run side by
 * side. {@link #close} waits for a call of another thread; a call after it is refused the same way.
 *
 * <p>A stream is a cudaStream_t as a number, 0 = the default stream; on the CPU it is ignored and
 * every call is finished when it returns. Tensors are the caller's again when the call returns.
 */
public final class Cache implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final CacheConfig config;
  private final CacheMemory memory;
  private final CacheState state;
  private final Cleaner.Cleanable cleanable;

  /**
   * A cache in memory that the library allocates.
   *
   * @param config what it is made for
   */
  public Cache(CacheConfig config) {
    this(config, null);
  }

  /**
   * A cache in the caller's memory.
   *
   * @param config what it is made for
   * @param buffers held until this is closed; null = the library allocates
   */
  public Cache(CacheConfig config, Buffers buffers) {
    this.config = config;
    this.memory = CacheMemory.of(config);
    if (buffers != null) buffers.hold();
    NativeConfig c = config.toNative();
    boolean made = false;
    try {
      ByteBuffer number = Direct.allocate("cache", 8);
      long result = Native.address_of(number);
      if (buffers == null) {
        Native.cache_create(c, 0, -1, 0, -1, result);
      } else {
        Native.cache_create(
            c,
            buffers.storage,
            buffers.storageBytes,
            buffers.workspace,
            buffers.workspaceBytes,
            result);
      }
      Reference.reachabilityFence(number);
      this.state = new CacheState(number.getLong(0), buffers);
      made = true;
    } finally {
      c.delete();
      if (!made && buffers != null) buffers.release();
    }
    this.cleanable = CLEANER.register(this, state);
  }

  /** Frees the cache; again is nothing. Waits for a call of another thread to end. */
  @Override
  public void close() {
    state.shut();
    cleanable.clean();
  }

  /**
   * Whether {@link #close} was called.
   *
   * @return true from its start on
   */
  public boolean closed() {
    return state.closed();
  }

  /**
   * What the cache was made for.
   *
   * @return as given
   */
  public CacheConfig config() {
    return config;
  }

  /**
   * What the cache needs.
   *
   * @return also the capacity of a selection
   */
  public CacheMemory memory() {
    return memory;
  }

  /**
   * A selection that fits this cache.
   *
   * @param rows rows of a decode call
   * @return in new memory
   */
  public Selection newSelection(int rows) {
    return Selection.allocate(rows, config.kvHeads(), memory.selectionCapacity());
  }

  // ---- sequences ------------------------------------------------------------------------------

  /**
   * Takes a slot for a new sequence of the cache's own sizes.
   *
   * @param seq 0 to maxSequences - 1; {@link Status#BAD_STATE} where it is open
   */
  public void open(int seq) {
    open(seq, SequenceOptions.DEFAULT);
  }

  /**
   * Takes a slot for a new sequence.
   *
   * @param seq 0 to maxSequences - 1; {@link Status#BAD_STATE} where it is open
   * @param options the request's own sizes
   */
  public void open(int seq, SequenceOptions options) {
    NativeOptions o = options.toNative();
    try {
      state.call(this, cache -> Native.sequence_open(cache, seq, o));
    } finally {
      o.delete();
    }
  }

  /**
   * Gives the slot back; its rows are gone.
   *
   * @param seq an open slot
   */
  public void closeSequence(int seq) {
    closeSequence(seq, 0);
  }

  /** As {@link #closeSequence(int)}, in the order of a stream. */
  public void closeSequence(int seq, long stream) {
    state.call(this, cache -> Native.sequence_close(cache, seq, stream));
  }

  /**
   * Drops all rows at a position and after, in every layer.
   *
   * @param seq a prefilled slot
   * @param position not before the prompt's end, not beyond the length
   */
  public void rewind(int seq, long position) {
    rewind(seq, position, 0);
  }

  /** As {@link #rewind(int, long)}, in the order of a stream. */
  public void rewind(int seq, long position, long stream) {
    state.call(this, cache -> Native.sequence_rewind(cache, seq, position, stream));
  }

  /**
   * Makes a closed slot a copy of a sequence.
   *
   * @param seq an open slot
   * @param copy a closed slot
   */
  public void fork(int seq, int copy) {
    fork(seq, copy, 0);
  }

  /** As {@link #fork(int, int)}, in the order of a stream. */
  public void fork(int seq, int copy, long stream) {
    state.call(this, cache -> Native.sequence_fork(cache, seq, copy, stream));
  }

  // ---- the two stages -------------------------------------------------------------------------

  /**
   * Stage 1 of one layer for a whole prompt in one call.
   *
   * @param seq an open slot
   * @param layer 0 to layers - 1
   * @param q [S, Hq, D]
   * @param k [S, Hkv, D]
   * @param v [S, Hkv, Dv]
   */
  public void prefill(int seq, int layer, Tensor q, Tensor k, Tensor v) {
    Objects.requireNonNull(k, "k");
    prefill(seq, layer, 0, k.ndim() == 0 ? 0 : k.shape(0), q, k, v, null, 0);
  }

  /**
   * Stage 1 of one layer, or a chunk of its prompt. Only the last W query rows matter, so calls
   * before them may be left out; the call whose rows end at S comes last and carries K and V.
   *
   * @param seq an open slot
   * @param layer 0 to layers - 1
   * @param start position of q's first row
   * @param promptTokens S, the same in every call of a prompt
   * @param q [n, Hq, D]: rows start to start + n - 1; null = none
   * @param k [S, Hkv, D]; null but in the last call
   * @param v [S, Hkv, Dv]; null but in the last call
   */
  public void prefill(
      int seq, int layer, long start, long promptTokens, Tensor q, Tensor k, Tensor v) {
    prefill(seq, layer, start, promptTokens, q, k, v, null, 0);
  }

  /**
   * As {@link #prefill(int, int, long, long, Tensor, Tensor, Tensor)}, over paged K and V and in
   * the order of a stream.
   *
   * @param paging one row; null = not paged
   * @param stream cudaStream_t
   */
  public void prefill(
      int seq,
      int layer,
      long start,
      long promptTokens,
      Tensor q,
      Tensor k,
      Tensor v,
      Paging paging,
      long stream) {
    if (paging != null) paging.check(1);
    DecodeArgs tensors = new DecodeArgs(0).q(q).k(k).v(v).paging(paging);
    Arguments a = tensors.begin(config);
    try {
      state.call(this, cache -> a.prefill(cache, seq, layer, start, promptTokens, stream));
    } finally {
      tensors.end();
    }
  }

  /**
   * Stage 2 of one layer: appends the rows' K and V, then writes for each row and KV head which
   * live rows to attend to. Needs q, k, v and a selection; out and lse are not touched.
   *
   * <p>A row at the layer's length appends; at a lower position, not before the prompt's end, it
   * first drops all rows from there on (a retried step, rejected drafts).
   *
   * @param layer 0 to layers - 1
   * @param args the rows
   */
  public void decodeSelect(int layer, DecodeArgs args) {
    decodeSelect(layer, args, 0);
  }

  /** As {@link #decodeSelect(int, DecodeArgs)}, in the order of a stream. */
  public void decodeSelect(int layer, DecodeArgs args, long stream) {
    state.rows(this, CacheState.Rows.DECODE_SELECT, config, layer, args, null, stream);
  }

  /**
   * Exact attention of each row over its selection, or without one over all live rows up to the
   * row's position. Appends nothing; k and v are not looked at.
   *
   * @param layer 0 to layers - 1
   * @param args the rows
   */
  public void attend(int layer, DecodeArgs args) {
    attend(layer, args, 0);
  }

  /** As {@link #attend(int, DecodeArgs)}, in the order of a stream. */
  public void attend(int layer, DecodeArgs args, long stream) {
    state.rows(this, CacheState.Rows.ATTEND, config, layer, args, null, stream);
  }

  /**
   * Select and attend in one: the fast path, with the same bits. Writes the selection too where one
   * is given.
   *
   * @param layer 0 to layers - 1
   * @param args the rows
   */
  public void decode(int layer, DecodeArgs args) {
    decode(layer, args, 0);
  }

  /** As {@link #decode(int, DecodeArgs)}, in the order of a stream. */
  public void decode(int layer, DecodeArgs args, long stream) {
    state.rows(this, CacheState.Rows.DECODE, config, layer, args, null, stream);
  }

  /**
   * What the selection misses, for rows that are stored already: selects, or takes the args'
   * selection, and compares with attention over all live rows. Appends nothing and writes no
   * output; waits.
   *
   * @param layer 0 to layers - 1
   * @param args the rows
   * @return over rows and query heads
   */
  public AuditResult audit(int layer, DecodeArgs args) {
    return audit(layer, args, 0);
  }

  /** As {@link #audit(int, DecodeArgs)}, in the order of a stream. */
  public AuditResult audit(int layer, DecodeArgs args, long stream) {
    NativeAudit result = new NativeAudit();
    try {
      state.rows(this, CacheState.Rows.AUDIT, config, layer, args, result, stream);
      return AuditResult.of(result);
    } finally {
      result.delete();
    }
  }

  // ---- reports --------------------------------------------------------------------------------

  /**
   * Counters of one layer of one sequence, with its plan.
   *
   * @param seq an open slot
   * @param layer 0 to layers - 1
   * @return all 0 before its prefill
   */
  public SequenceStats stats(int seq, int layer) {
    return stats(seq, layer, 0);
  }

  /** As {@link #stats(int, int)}; waits for a stream. */
  public SequenceStats stats(int seq, int layer, long stream) {
    NativeStats result = new NativeStats();
    NativePlan plan = new NativePlan();
    try {
      state.call(this, cache -> Native.stats(cache, seq, layer, stream, plan, result));
      return SequenceStats.of(result, plan);
    } finally {
      plan.delete();
      result.delete();
    }
  }

  /**
   * The original positions of all live rows.
   *
   * @param seq a prefilled slot
   * @param layer 0 to layers - 1
   * @return [Hkv][count], ascending
   */
  public long[][] keptPositions(int seq, int layer) {
    return keptPositions(seq, layer, 0);
  }

  /** As {@link #keptPositions(int, int)}; waits for a stream. */
  public long[][] keptPositions(int seq, int layer, long stream) {
    ByteBuffer count = Direct.allocate("count", 8);
    ByteBuffer[] out = new ByteBuffer[1];
    int heads = config.kvHeads();
    state.call(
        this,
        cache -> {
          long number = Native.address_of(count);
          Native.kept_positions(cache, seq, layer, stream, 0, 0, number);
          long elements = count.getLong(0) * heads;
          out[0] = Direct.allocate("out", 8 * elements);
          long address = Native.address_of(out[0]);
          Native.kept_positions(cache, seq, layer, stream, address, elements, number);
        });
    long[][] kept = new long[heads][(int) count.getLong(0)];
    var all = out[0].asLongBuffer();
    for (long[] head : kept) all.get(head);
    return kept;
  }

  // ---- between caches -------------------------------------------------------------------------

  /**
   * One layer's heads as bytes for another cache.
   *
   * @param seq a prefilled slot
   * @param layer 0 to layers - 1
   * @param headBegin first head
   * @param headEnd behind the last
   * @return in new memory
   */
  public ByteBuffer exportLayer(int seq, int layer, int headBegin, int headEnd) {
    long bytes = exportLayer(seq, layer, headBegin, headEnd, null, null, null, null, 0);
    ByteBuffer out = Direct.allocate("out", bytes);
    exportLayer(seq, layer, headBegin, headEnd, null, null, null, out, 0);
    return out;
  }

  /**
   * Writes one layer's heads as bytes, from a buffer's position to its limit at most.
   *
   * @param seq a prefilled slot
   * @param layer 0 to layers - 1
   * @param headBegin first head
   * @param headEnd behind the last
   * @param k the engine's store where the cache is INDEXED, else null
   * @param v as k
   * @param paging of that store; null = not paged
   * @param out direct; null = just the size
   * @param stream cudaStream_t
   * @return bytes written, or needed where out is null
   */
  public long exportLayer(
      int seq,
      int layer,
      int headBegin,
      int headEnd,
      Tensor k,
      Tensor v,
      Paging paging,
      ByteBuffer out,
      long stream) {
    if (paging != null) paging.check(1);
    long address = out == null ? 0 : Direct.address("out", out, true);
    long capacity = out == null ? 0 : Direct.bytes(out);
    ByteBuffer bytes = Direct.allocate("bytes", 8);
    DecodeArgs tensors = new DecodeArgs(0).k(k).v(v).paging(paging);
    long number = Native.address_of(bytes);
    Arguments a = tensors.begin(config);
    try {
      state.call(
          this,
          cache ->
              a.export_heads(
                  cache, seq, layer, headBegin, headEnd, address, capacity, number, stream));
      return bytes.getLong(0);
    } finally {
      tensors.end();
      Reference.reachabilityFence(out);
    }
  }

  /**
   * Takes such bytes, from the buffer's position to its limit, into an open slot without a prefill.
   *
   * @param seq an open slot
   * @param layer 0 to layers - 1
   * @param headBegin first head, of this cache
   * @param headEnd behind the last
   * @param in direct
   */
  public void importLayer(int seq, int layer, int headBegin, int headEnd, ByteBuffer in) {
    importLayer(seq, layer, headBegin, headEnd, null, null, null, in, 0);
  }

  /**
   * As {@link #importLayer(int, int, int, int, ByteBuffer)}, for an INDEXED cache and in the order
   * of a stream.
   *
   * @param k the engine's store where the cache is INDEXED, else null
   * @param v as k
   * @param paging of that store; null = not paged
   */
  public void importLayer(
      int seq,
      int layer,
      int headBegin,
      int headEnd,
      Tensor k,
      Tensor v,
      Paging paging,
      ByteBuffer in,
      long stream) {
    if (paging != null) paging.check(1);
    long address = Direct.address("in", in, false);
    DecodeArgs tensors = new DecodeArgs(0).k(k).v(v).paging(paging);
    long length = Direct.bytes(in);
    Arguments a = tensors.begin(config);
    try {
      state.call(
          this,
          cache -> a.import_heads(cache, seq, layer, headBegin, headEnd, address, length, stream));
    } finally {
      tensors.end();
      Reference.reachabilityFence(in);
    }
  }
}
