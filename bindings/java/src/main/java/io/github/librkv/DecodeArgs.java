package io.github.librkv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.Objects;

/**
 * The arguments of select, attend, decode and audit, in native memory that this object owns. Make
 * one, set what stays the same, and use it for every step and layer: a call then allocates nothing
 * and crosses into native code once.
 *
 * <p>It keeps the buffers of its tensors alive. One thread at a time: a call or a setter that meets
 * another thread's is an {@link RkvException} with {@link Status#BAD_STATE}.
 */
public final class DecodeArgs {
  private static final VarHandle BUSY;
  private static final int Q = 0;
  private static final int K = 1;
  private static final int V = 2;
  private static final int OUT = 3;

  static {
    try {
      BUSY = MethodHandles.lookup().findVarHandle(DecodeArgs.class, "busy", boolean.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final ByteBuffer memory; // the struct, int64 positions [maxRows], int32 ids [maxRows]
  private final Arguments arguments; // a view of the struct
  private final int maxRows;
  private final int positionsAt; // in `memory`
  private final int idsAt;
  private final Tensor[] tensors = new Tensor[4];
  private int rows;
  private boolean onHost = true; // ids and positions are those above
  private Buffer lse;
  private Buffer rowStatus;
  private Selection selection;
  private Paging paging;
  private volatile boolean busy;

  /**
   * Arguments for calls of up to maxRows rows, all of them padding until they are set.
   *
   * @param maxRows 0 or more
   */
  public DecodeArgs(int maxRows) {
    if (maxRows < 0) throw RkvException.invalid("maxRows: %d, need 0 or more", maxRows);
    this.maxRows = maxRows;
    positionsAt = (int) Arguments.bytes();
    memory = Direct.allocate("arguments", positionsAt + 12L * maxRows);
    idsAt = positionsAt + 8 * maxRows;
    arguments = new Arguments(Native.address_of(memory), false);
    arguments.init();
    for (int row = 0; row < maxRows; ++row) memory.putInt(idsAt + 4 * row, -1);
    rows(maxRows);
  }

  /**
   * How many rows the next calls have.
   *
   * @param count 0 to maxRows
   * @return this
   */
  public DecodeArgs rows(int count) {
    if (count < 0 || count > maxRows) {
      throw RkvException.invalid("rows: %d, these arguments hold 0 to %d", count, maxRows);
    }
    begin();
    rows = count;
    onHost = true;
    long address = Native.address_of(memory);
    arguments.set_rows(count, address + idsAt, address + positionsAt);
    end();
    return this;
  }

  /**
   * Sets one row. Rows of one sequence are adjacent, with consecutive positions.
   *
   * @param row 0 to maxRows - 1
   * @param seq slot, -1 = padding row
   * @param position true position of the row's token (RoPE's)
   * @return this
   */
  public DecodeArgs row(int row, int seq, long position) {
    Objects.checkIndex(row, maxRows);
    begin();
    memory.putInt(idsAt + 4 * row, seq);
    memory.putLong(positionsAt + 8 * row, position);
    end();
    return this;
  }

  /**
   * Rows whose slots and positions lie in the device's memory, unchecked, until {@link #rows} is
   * called.
   *
   * @param count rows
   * @param seq address of int32 [rows]
   * @param position address of int64 [rows]
   * @return this
   */
  public DecodeArgs rowsAtAddress(int count, long seq, long position) {
    begin();
    rows = count;
    onHost = false;
    arguments.set_rows(count, seq, position);
    end();
    return this;
  }

  /**
   * The queries, after RoPE.
   *
   * @param tensor [rows, Hq, D]; null = none
   * @return this
   */
  public DecodeArgs q(Tensor tensor) {
    return tensor(Q, tensor);
  }

  /**
   * The new tokens' keys, after RoPE.
   *
   * @param tensor [rows, Hkv, D]; null = none
   * @return this
   */
  public DecodeArgs k(Tensor tensor) {
    return tensor(K, tensor);
  }

  /**
   * The new tokens' values.
   *
   * @param tensor [rows, Hkv, Dv]; null = none
   * @return this
   */
  public DecodeArgs v(Tensor tensor) {
    return tensor(V, tensor);
  }

  /**
   * Where the attention's output goes.
   *
   * @param tensor [rows, Hq, Dv], writable; null = none
   * @return this
   */
  public DecodeArgs out(Tensor tensor) {
    if (tensor != null && tensor.readOnly()) {
      throw RkvException.invalid("out: a read-only buffer, but it is written");
    }
    return tensor(OUT, tensor);
  }

  /**
   * Where the natural log-sum-exp of the logits goes, from the buffer's position on.
   *
   * @param buffer direct, [rows, Hq]; null = not wanted
   * @return this
   */
  public DecodeArgs lse(FloatBuffer buffer) {
    long address = buffer == null ? 0 : Direct.ordered("lse", buffer, true);
    begin();
    lse = buffer == null ? null : buffer.slice();
    arguments.set_lse(address);
    end();
    return this;
  }

  /**
   * Where the log-sum-exp goes, by its address, unchecked.
   *
   * @param address of float [rows, Hq]; 0 = not wanted
   * @return this
   */
  public DecodeArgs lseAtAddress(long address) {
    begin();
    lse = null;
    arguments.set_lse(address);
    end();
    return this;
  }

  /**
   * Where the status of refused rows goes, from the buffer's position on.
   *
   * @param buffer direct, [rows], written for refused rows alone; null = not wanted
   * @return this
   */
  public DecodeArgs rowStatus(IntBuffer buffer) {
    long address = buffer == null ? 0 : Direct.ordered("row_status", buffer, true);
    begin();
    rowStatus = buffer == null ? null : buffer.slice();
    arguments.set_row_status(address);
    end();
    return this;
  }

  /**
   * Where the status of refused rows goes, by its address, unchecked.
   *
   * @param address of int32 [rows]; 0 = not wanted
   * @return this
   */
  public DecodeArgs rowStatusAtAddress(long address) {
    begin();
    rowStatus = null;
    arguments.set_row_status(address);
    end();
    return this;
  }

  /**
   * The selection: written by select and decode, read by attend and audit.
   *
   * @param lists null = none: attend looks at all live rows
   * @return this
   */
  public DecodeArgs selection(Selection lists) {
    begin();
    selection = lists;
    if (lists != null) {
      lists.put(arguments);
    } else {
      arguments.clear_selection();
    }
    end();
    return this;
  }

  /**
   * The blocks of a paged K and V.
   *
   * @param blocks null = not paged
   * @return this
   */
  public DecodeArgs paging(Paging blocks) {
    begin();
    paging = blocks;
    if (blocks != null) {
      blocks.put(arguments);
    } else {
      arguments.clear_paging();
    }
    end();
    return this;
  }

  /**
   * For a layer that shares the K and V of the call's layer, after that one's own call.
   *
   * @param shared false unless given
   * @return this
   */
  public DecodeArgs attendOnly(boolean shared) {
    begin();
    arguments.set_attend_only(shared ? 1 : 0);
    end();
    return this;
  }

  private DecodeArgs tensor(int slot, Tensor tensor) {
    begin();
    tensors[slot] = tensor;
    if (tensor != null) {
      tensor.put(arguments, slot);
    } else {
      arguments.clear_tensor(slot);
    }
    end();
    return this;
  }

  /** The native arguments for one call, checked against the buffers; {@link #end} follows. */
  Arguments begin(CacheConfig config) {
    begin();
    try {
      if (onHost && rows > 0) {
        fits("lse", lse, 4L * rows * config.qHeads());
        fits("row_status", rowStatus, 4L * rows);
        if (selection != null) selection.check(rows, config.kvHeads());
        if (paging != null) paging.check(rows);
      }
      return arguments;
    } catch (RkvException e) {
      end();
      throw e;
    }
  }

  private static void fits(String name, Buffer buffer, long need) {
    if (buffer != null && Direct.bytes(buffer) < need) {
      throw RkvException.tooSmall(name, Direct.bytes(buffer), need);
    }
  }

  private void begin() {
    if (!BUSY.compareAndSet(this, false, true)) {
      throw RkvException.badState("the arguments are in use by another thread");
    }
  }

  /** Also keeps every buffer alive until here. */
  void end() {
    busy = false;
    java.lang.ref.Reference.reachabilityFence(this);
  }
}
