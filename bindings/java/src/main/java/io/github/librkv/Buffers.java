package io.github.librkv;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The caller's memory for a {@link Cache}, which keeps this object, and so direct buffers, alive
 * until it is closed. One cache at a time may hold the storage; caches whose calls never overlap
 * may share a workspace. {@link CacheMemory} says how much of both. Contents need not be cleared.
 */
public final class Buffers {
  final long storage;
  final long storageBytes;
  final long workspace;
  final long workspaceBytes;
  private final ByteBuffer[] owners;
  private final AtomicBoolean held = new AtomicBoolean();

  private Buffers(
      long storage, long storageBytes, long workspace, long workspaceBytes, ByteBuffer... owners) {
    if (storageBytes < 0 || workspaceBytes < 0) {
      throw RkvException.invalid(
          "buffers: %d bytes of storage, %d of workspace", storageBytes, workspaceBytes);
    }
    this.storage = storage;
    this.storageBytes = storageBytes;
    this.workspace = workspace;
    this.workspaceBytes = workspaceBytes;
    this.owners = owners;
  }

  /**
   * Direct buffers, from position to limit.
   *
   * @param storage {@link CacheMemory#storageBytes} at {@link CacheMemory#alignment}
   * @param workspace {@link CacheMemory#workspaceBytes} at the same alignment
   * @return keeps both alive
   */
  public static Buffers of(ByteBuffer storage, ByteBuffer workspace) {
    return new Buffers(
        Direct.address("storage", storage, true),
        storage.remaining(),
        Direct.address("workspace", workspace, true),
        workspace.remaining(),
        storage,
        workspace);
  }

  /**
   * Memory by its addresses, unchecked: of a device, or above 2 GB. It must live until the cache is
   * closed.
   *
   * @param storage address
   * @param storageBytes its size
   * @param workspace address
   * @param workspaceBytes its size
   * @return names the memory, owns none
   */
  public static Buffers atAddress(
      long storage, long storageBytes, long workspace, long workspaceBytes) {
    return new Buffers(storage, storageBytes, workspace, workspaceBytes);
  }

  /**
   * New direct buffers of the right size and alignment.
   *
   * @param memory the needs
   * @return owns its memory; up to 2 GB each
   */
  public static Buffers allocate(CacheMemory memory) {
    return of(
        aligned("storage", memory.storageBytes(), memory.alignment()),
        aligned("workspace", memory.workspaceBytes(), memory.alignment()));
  }

  private static ByteBuffer aligned(String name, long bytes, long alignment) {
    ByteBuffer whole = Direct.allocate(name, bytes + alignment);
    int skip = (int) Math.floorMod(-Native.address_of(whole), alignment);
    return whole.slice(skip, (int) bytes);
  }

  /** Taken by one cache until {@link #release}. */
  void hold() {
    if (!held.compareAndSet(false, true)) {
      throw RkvException.badState("buffers: held by another cache that is not closed");
    }
  }

  void release() {
    held.set(false);
    java.lang.ref.Reference.reachabilityFence(owners);
  }
}
