package io.github.librkv;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** Direct buffers as native memory: what lies between a buffer's position and its limit. */
final class Direct {
  private Direct() {}

  /** Address of the element at the buffer's position. Refuses what native code cannot use. */
  static long address(String name, Buffer buffer, boolean write) {
    if (!buffer.isDirect()) {
      throw RkvException.invalid("%s: a heap buffer, need a direct one", name);
    }
    if (write && buffer.isReadOnly()) {
      throw RkvException.invalid("%s: a read-only buffer, but it is written", name);
    }
    long base = Native.address_of(buffer);
    if (base == 0) {
      throw RkvException.invalid("%s: this Java runtime gives no access to direct buffers", name);
    }
    return base + (long) buffer.position() * itemBytes(buffer);
  }

  /** As {@link #address}, for elements of more than one byte: in the machine's byte order. */
  static long ordered(String name, Buffer buffer, boolean write) {
    long address = address(name, buffer, write);
    if (order(buffer) != ByteOrder.nativeOrder()) {
      throw RkvException.invalid(
          "%s: buffer order %s, need order(ByteOrder.nativeOrder())", name, order(buffer));
    }
    return address;
  }

  /** Bytes between position and limit. */
  static long bytes(Buffer buffer) {
    return (long) buffer.remaining() * itemBytes(buffer);
  }

  static int itemBytes(Buffer buffer) {
    if (buffer instanceof ByteBuffer) return 1;
    if (buffer instanceof ShortBuffer) return 2;
    return buffer instanceof LongBuffer ? 8 : 4;
  }

  /** Native memory in the machine's byte order, zero. */
  static ByteBuffer allocate(String name, long bytes) {
    if (bytes < 0 || bytes > Integer.MAX_VALUE) {
      throw RkvException.invalid(
          "%s: %d bytes, a buffer has at most %d", name, bytes, Integer.MAX_VALUE);
    }
    return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
  }

  private static ByteOrder order(Buffer buffer) {
    if (buffer instanceof ByteBuffer b) return b.order();
    if (buffer instanceof FloatBuffer b) return b.order();
    if (buffer instanceof ShortBuffer b) return b.order();
    if (buffer instanceof IntBuffer b) return b.order();
    if (buffer instanceof LongBuffer b) return b.order();
    throw RkvException.invalid("%s cannot be used", buffer.getClass().getSimpleName());
  }
}
