package io.github.librkv;

/**
 * What a cache needs, in bytes but for the capacity.
 *
 * @param alignment of both buffers
 * @param storageBytes of {@link Buffers}' storage
 * @param workspaceBytes of {@link Buffers}' workspace
 * @param selectionCapacity the least capacity of a {@link Selection}, token rows
 * @param kBytes keys, all slots: part of the storage, as are the fields below
 * @param vBytes values
 * @param summaryBytes page summaries
 * @param indexBytes positions of the kept rows
 * @param windowBytes query rows that wait for the prompt's end
 * @param tableBytes tables and alignment
 */
public record CacheMemory(
    long alignment,
    long storageBytes,
    long workspaceBytes,
    long selectionCapacity,
    long kBytes,
    long vBytes,
    long summaryBytes,
    long indexBytes,
    long windowBytes,
    long tableBytes) {

  /**
   * The needs of a cache of this config. Touches no device.
   *
   * @param config as for {@link Cache}
   * @return bytes, alignment and capacity
   */
  public static CacheMemory of(CacheConfig config) {
    NativeConfig c = config.toNative();
    NativeMemory m = new NativeMemory();
    try {
      Native.rkv_cache_memory(c, m);
      return new CacheMemory(
          m.getAlignment(),
          m.getStorageBytes(),
          m.getWorkspaceBytes(),
          m.getSelectionCapacity(),
          m.getKBytes(),
          m.getVBytes(),
          m.getSummaryBytes(),
          m.getIndexBytes(),
          m.getWindowBytes(),
          m.getTableBytes());
    } finally {
      m.delete();
      c.delete();
    }
  }
}
