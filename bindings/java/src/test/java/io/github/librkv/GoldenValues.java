package io.github.librkv;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** The generator of golden vectors, tensors in the three storage types, and the checksum. */
final class GoldenValues {
  static final int Q = 0;
  static final int K = 1;
  static final int V = 2;
  static final int OUT = 3;

  private record Override(int tensor, long position, int head, int channel, float value) {}

  private final List<Override> overrides = new ArrayList<>();
  private long checksum = 0xcbf29ce484222325L;

  /** Forgets the elements set for a case. */
  void clear() {
    overrides.clear();
  }

  void set(int tensor, long position, int head, int channel, float value) {
    overrides.add(new Override(tensor, position, head, channel, value));
  }

  static float generated(long seed, long layer, long tensor, long index) {
    long z = (((seed * 256 + layer) * 4 + tensor) << 40) + index;
    z += 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    z ^= z >>> 31;
    return ((z >>> 56) - 128) / 64.0f;
  }

  /** Row `row` of a [rows, heads, channels] tensor as the row of a position. */
  void fill(Tensor tensor, int kind, int row, long seed, int layer, long position) {
    ByteBuffer memory = (ByteBuffer) tensor.buffer();
    int heads = (int) tensor.shape(1);
    int channels = (int) tensor.shape(2);
    long first = position * heads * channels;
    int at = row * heads * channels;
    for (int i = 0; i < heads * channels; ++i) {
      put(tensor.dtype(), memory, at + i, generated(seed, layer, kind, first + i));
    }
    for (Override o : overrides) {
      if (o.tensor == kind && o.position == position) {
        put(tensor.dtype(), memory, at + o.head * channels + o.channel, o.value);
      }
    }
  }

  static void fillNan(Tensor tensor) {
    ByteBuffer memory = (ByteBuffer) tensor.buffer();
    int elements = memory.remaining() / tensor.dtype().bytes();
    for (int i = 0; i < elements; ++i) put(tensor.dtype(), memory, i, Float.NaN);
  }

  static double element(Tensor tensor, int index) {
    ByteBuffer memory = (ByteBuffer) tensor.buffer();
    return switch (tensor.dtype()) {
      case F32 -> memory.getFloat(4 * index);
      case BF16 -> Float.intBitsToFloat(memory.getShort(2 * index) << 16);
      default -> fromHalf(memory.getShort(2 * index));
    };
  }

  private static void put(DType dtype, ByteBuffer memory, int index, float value) {
    switch (dtype) {
      case F32 -> memory.putFloat(4 * index, value);
      case BF16 -> memory.putShort(2 * index, (short) (Float.floatToRawIntBits(value) >>> 16));
      default -> memory.putShort(2 * index, toHalf(value));
    }
  }

  /** Of a value that F16 holds, an infinity or NaN. */
  private static short toHalf(float x) {
    int sign = Float.floatToRawIntBits(x) >>> 31 << 15;
    if (Float.isNaN(x)) return 0x7E00;
    if (Float.isInfinite(x)) return (short) (sign | 0x7C00);
    if (x == 0) return (short) sign;
    int unit = Math.max(Math.getExponent(x) - 10, -24); // the value of the last bit
    int steps = (int) Math.scalb(Math.abs(x), -unit); // 1024 to 2047, below for subnormals
    return (short) (sign | ((unit + 24) * 1024 + steps));
  }

  private static float fromHalf(short half) {
    int exponent = half >> 10 & 31;
    int mantissa = half & 1023;
    float x =
        exponent == 31
            ? mantissa != 0 ? Float.NaN : Float.POSITIVE_INFINITY
            : exponent == 0
                ? Math.scalb((float) mantissa, -24)
                : Math.scalb((float) (1024 + mantissa), exponent - 25);
    return half < 0 ? -x : x;
  }

  long checksum() {
    return checksum;
  }

  /** Adds the low bytes of a number, the lowest first. */
  void add(long value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      checksum = (checksum ^ (value >>> (8 * i) & 255)) * 0x100000001b3L;
    }
  }

  /** Adds all elements as they are stored. */
  void add(Tensor tensor) {
    ByteBuffer memory = (ByteBuffer) tensor.buffer();
    while (memory.hasRemaining()) checksum = (checksum ^ (memory.get() & 255)) * 0x100000001b3L;
  }
}
