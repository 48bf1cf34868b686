package io.github.librkv;

import java.nio.IntBuffer;
import java.nio.LongBuffer;

/**
 * Where the blocks of a paged K and V lie: a table of block numbers, or tables of block addresses.
 * The memory is the caller's and is kept alive by this object.
 */
public final class Paging {
  private final long blockTokens;
  private final long maxBlocks;
  private final long rowStride;
  private final IntBuffer table;
  private final LongBuffer kBlocks;
  private final LongBuffer vBlocks;
  private final long tableAddress;
  private final long kAddress;
  private final long vAddress;

  private Paging(
      long blockTokens,
      long maxBlocks,
      long rowStride,
      IntBuffer table,
      LongBuffer kBlocks,
      LongBuffer vBlocks,
      long[] addresses) {
    this.blockTokens = blockTokens;
    this.maxBlocks = maxBlocks;
    this.rowStride = rowStride;
    this.table = table;
    this.kBlocks = kBlocks;
    this.vBlocks = vBlocks;
    this.tableAddress = addresses[0];
    this.kAddress = addresses[1];
    this.vAddress = addresses[2];
  }

  /**
   * Blocks by number, in a direct buffer.
   *
   * @param blockTokens tokens of a block
   * @param maxBlocks columns of the table
   * @param rowStride elements between rows of the table
   * @param table [rows, maxBlocks], negative = absent
   * @return keeps the buffer alive
   */
  public static Paging byTable(long blockTokens, long maxBlocks, long rowStride, IntBuffer table) {
    long[] addresses = {Direct.ordered("block_table", table, false), 0, 0};
    return new Paging(blockTokens, maxBlocks, rowStride, table.slice(), null, null, addresses);
  }

  /**
   * Blocks by address, in direct buffers. The blocks themselves are unchecked.
   *
   * @param blockTokens tokens of a block
   * @param maxBlocks columns of the tables
   * @param rowStride elements between rows of the tables
   * @param kBlocks [rows, maxBlocks]
   * @param vBlocks [rows, maxBlocks]
   * @return keeps the buffers alive
   */
  public static Paging byBlocks(
      long blockTokens, long maxBlocks, long rowStride, LongBuffer kBlocks, LongBuffer vBlocks) {
    long[] addresses = {
      0, Direct.ordered("k_blocks", kBlocks, false), Direct.ordered("v_blocks", vBlocks, false)
    };
    return new Paging(
        blockTokens, maxBlocks, rowStride, null, kBlocks.slice(), vBlocks.slice(), addresses);
  }

  /**
   * Tables by their addresses, unchecked: device memory. 0 = not given.
   *
   * @param blockTokens tokens of a block
   * @param maxBlocks columns of the tables
   * @param rowStride elements between rows of the tables
   * @param table address of int32 [rows, maxBlocks]
   * @param kBlocks address of addresses [rows, maxBlocks]
   * @param vBlocks address of addresses [rows, maxBlocks]
   * @return a view
   */
  public static Paging atAddress(
      long blockTokens, long maxBlocks, long rowStride, long table, long kBlocks, long vBlocks) {
    long[] addresses = {table, kBlocks, vBlocks};
    return new Paging(blockTokens, maxBlocks, rowStride, null, null, null, addresses);
  }

  /** Refuses a call that would read behind a table. */
  void check(int rows) {
    check("block_table", rows, table);
    check("k_blocks", rows, kBlocks);
    check("v_blocks", rows, vBlocks);
  }

  private void check(String name, int rows, java.nio.Buffer buffer) {
    if (buffer == null || rows == 0) return;
    long have = buffer.remaining();
    boolean inside = maxBlocks >= 0 && maxBlocks <= have && rowStride >= 0;
    if (inside && rows > 1) inside = rowStride <= (have - maxBlocks) / (rows - 1);
    if (!inside) {
      throw RkvException.invalid(
          "%s: %d entries, need %d rows of %d, %d apart", name, have, rows, maxBlocks, rowStride);
    }
  }

  void put(Arguments arguments) {
    arguments.set_paging(blockTokens, maxBlocks, rowStride, tableAddress, kAddress, vAddress);
  }
}
