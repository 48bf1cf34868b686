package io.github.librkv;

import java.nio.IntBuffer;
import java.util.Objects;

/**
 * Lists of live rows (or what {@link Space} says) per decode row and KV head: ascending, padded
 * with -1. The memory is the caller's and is kept alive by this object; the library writes it in
 * select and decode and reads it in attend and audit.
 */
public final class Selection {
  /** What the numbers in a selection are. Attention reads LIVE_ROW alone. */
  public enum Space {
    /** Index among the live rows. */
    LIVE_ROW,
    /** Position of the token in the text. */
    POSITION,
    /** Slot of the engine's paged store. */
    SLOT
  }

  private final Space space;
  private final int kvHeads;
  private final long capacity;
  private final IntBuffer indices; // [rows, Hkv, capacity]
  private final IntBuffer counts; // [rows, Hkv]
  private final long indicesAddress;
  private final long countsAddress;

  private Selection(
      Space space,
      int kvHeads,
      long capacity,
      IntBuffer indices,
      IntBuffer counts,
      long indicesAddress,
      long countsAddress) {
    this.space = space;
    this.kvHeads = kvHeads;
    this.capacity = capacity;
    this.indices = indices;
    this.counts = counts;
    this.indicesAddress = indicesAddress;
    this.countsAddress = countsAddress;
  }

  /**
   * A selection in direct buffers, from their positions on.
   *
   * @param space what the numbers are
   * @param kvHeads Hkv
   * @param capacity at least {@link CacheMemory#selectionCapacity}
   * @param indices [rows, Hkv, capacity]
   * @param counts [rows, Hkv]
   * @return rows as many as the buffers hold
   */
  public static Selection of(
      Space space, int kvHeads, long capacity, IntBuffer indices, IntBuffer counts) {
    return new Selection(
        Objects.requireNonNull(space, "space"),
        kvHeads,
        capacity,
        indices.slice(),
        counts.slice(),
        Direct.ordered("selection.indices", indices, true),
        Direct.ordered("selection.counts", counts, true));
  }

  /**
   * A selection in new memory.
   *
   * @param rows rows of a decode call
   * @param kvHeads Hkv
   * @param capacity at least {@link CacheMemory#selectionCapacity}
   * @return with space LIVE_ROW
   */
  public static Selection allocate(int rows, int kvHeads, long capacity) {
    if (rows < 0 || kvHeads < 0 || capacity < 0 || capacity > Integer.MAX_VALUE) {
      throw RkvException.invalid(
          "selection: %d rows, %d KV heads, capacity %d", rows, kvHeads, capacity);
    }
    long lists = (long) rows * kvHeads;
    long bytes =
        Math.multiplyHigh(lists, capacity * 4) == 0 ? lists * capacity * 4 : Long.MAX_VALUE;
    return of(
        Space.LIVE_ROW,
        kvHeads,
        capacity,
        Direct.allocate("selection.indices", bytes).asIntBuffer(),
        Direct.allocate("selection.counts", lists * 4).asIntBuffer());
  }

  /**
   * A selection in memory by its addresses, unchecked: device memory.
   *
   * @param space what the numbers are
   * @param kvHeads Hkv
   * @param capacity at least {@link CacheMemory#selectionCapacity}
   * @param indices address of int32 [rows, Hkv, capacity]
   * @param counts address of int32 [rows, Hkv]
   * @return its numbers cannot be read from here
   */
  public static Selection atAddress(
      Space space, int kvHeads, long capacity, long indices, long counts) {
    return new Selection(space, kvHeads, capacity, null, null, indices, counts);
  }

  /**
   * The length of a list.
   *
   * @return elements
   */
  public long capacity() {
    return capacity;
  }

  /**
   * How many tokens one KV head of a row has selected.
   *
   * @param row of the last call
   * @param head KV head
   * @return 0 for a padding row
   */
  public int count(int row, int head) {
    Objects.checkIndex(head, kvHeads);
    return readable(counts).get(Math.addExact(Math.multiplyExact(row, kvHeads), head));
  }

  /**
   * What one KV head of a row has selected.
   *
   * @param row of the last call
   * @param head KV head
   * @return ascending, a copy
   */
  public int[] indices(int row, int head) {
    int count = count(row, head);
    if (count < 0 || count > capacity) {
      throw RkvException.invalid(
          "selection.counts[%d, %d] is %d: it must lie in [0, %d]", row, head, count, capacity);
    }
    int[] list = new int[count];
    readable(indices).get((int) (((long) row * kvHeads + head) * capacity), list);
    return list;
  }

  /** Refuses a call whose lists would not fit. */
  void check(int rows, int heads) {
    if (heads != kvHeads) {
      throw RkvException.invalid("selection: %d KV heads, the cache has %d", kvHeads, heads);
    }
    if (indices == null) return;
    if (capacity < 0) throw RkvException.invalid("selection.capacity: %d", capacity);
    long lists = (long) rows * kvHeads;
    if (Direct.bytes(counts) < lists * 4) {
      throw RkvException.tooSmall("selection.counts", Direct.bytes(counts), lists * 4);
    }
    if (lists > 0 && Direct.bytes(indices) / 4 / lists < capacity) {
      throw RkvException.invalid(
          "selection.indices: %d elements, need %d x %d", indices.remaining(), lists, capacity);
    }
  }

  void put(Arguments arguments) {
    arguments.set_selection(space.ordinal(), indicesAddress, countsAddress, capacity);
  }

  private static IntBuffer readable(IntBuffer buffer) {
    if (buffer == null) throw RkvException.invalid("selection: in memory that is not Java's");
    return buffer;
  }
}
