package io.github.librkv;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/**
 * A strided view of memory that somebody else owns: dtype, up to six axes, a stride in elements for
 * each. Logical axes are [rows, heads, channels]; only strides decide how it lies.
 *
 * <p>A view of a direct buffer starts at the buffer's position, must end before its limit, and
 * keeps the buffer alive. Position and limit are read once, here. A view of an address is
 * unchecked, and its memory must live as long as it is used.
 *
 * <p>Immutable and cheap to make: a step whose K lies elsewhere makes a new one.
 */
public final class Tensor {
  private static final int MAX_AXES = 6;

  private final DType dtype;
  private final long address;
  private final int ndim;
  private final long[] axes = new long[3 * MAX_AXES]; // shape, strides, the scale's strides
  private final Buffer owner; // keeps the memory alive; null for an address
  private final long scale; // address; 0 = none
  private final Buffer scaleOwner;

  private Tensor(DType dtype, long address, Buffer owner, long[] shape, long[] strides) {
    checkAxes(shape.length, strides.length);
    this.dtype = dtype;
    this.address = address;
    this.owner = duplicate(owner);
    this.scale = 0;
    this.scaleOwner = null;
    this.ndim = shape.length;
    System.arraycopy(shape, 0, axes, 0, ndim);
    System.arraycopy(strides, 0, axes, MAX_AXES, ndim);
  }

  private Tensor(Tensor whole, long address, long scale, Buffer scaleOwner) {
    dtype = whole.dtype;
    this.address = address;
    owner = whole.owner;
    this.scale = scale;
    this.scaleOwner = scaleOwner;
    ndim = whole.ndim;
    System.arraycopy(whole.axes, 0, axes, 0, axes.length);
  }

  /**
   * A contiguous view, the last axis fastest.
   *
   * @param dtype type of the elements
   * @param buffer a direct ByteBuffer, FloatBuffer (F32) or ShortBuffer (F16, BF16), in the
   *     machine's byte order
   * @param shape extents
   * @return the view
   */
  public static Tensor of(DType dtype, Buffer buffer, long... shape) {
    return of(dtype, buffer, 0, shape, contiguous(shape));
  }

  /**
   * A strided view.
   *
   * @param dtype type of the elements
   * @param buffer as for {@link #of(DType, Buffer, long...)}
   * @param offset of the first element from the buffer's position, in elements
   * @param shape extents
   * @param strides in elements, of any sign
   * @return the view
   */
  public static Tensor of(DType dtype, Buffer buffer, long offset, long[] shape, long[] strides) {
    if (buffer instanceof IntBuffer
        || buffer instanceof LongBuffer
        || buffer instanceof FloatBuffer && dtype != DType.F32
        || buffer instanceof ShortBuffer && dtype != DType.F16 && dtype != DType.BF16
        || buffer instanceof java.nio.CharBuffer
        || buffer instanceof java.nio.DoubleBuffer) {
      throw RkvException.invalid("tensor: %s elements in a %s", dtype, kind(buffer));
    }
    long base =
        dtype.bytes() == 1
            ? Direct.address("tensor", buffer, false)
            : Direct.ordered("tensor", buffer, false);
    checkBounds(dtype, Direct.bytes(buffer), offset, shape, strides);
    return new Tensor(dtype, base + offset * dtype.bytes(), buffer, shape, strides);
  }

  /**
   * An unchecked view of memory by its address: device memory, or the engine's own.
   *
   * @param dtype type of the elements
   * @param address of the first element
   * @param shape extents
   * @param strides in elements, of any sign
   * @return the view
   */
  public static Tensor atAddress(DType dtype, long address, long[] shape, long[] strides) {
    return new Tensor(dtype, address, null, shape, strides);
  }

  /**
   * A contiguous tensor in new memory, zero.
   *
   * @param dtype type of the elements
   * @param shape extents
   * @return the view; {@link #buffer} is its memory
   */
  public static Tensor allocate(DType dtype, long... shape) {
    long bytes = dtype.bytes();
    for (long extent : shape) bytes = multiply(bytes, extent);
    return of(dtype, Direct.allocate("tensor", bytes), shape);
  }

  /**
   * A part of the first axis, in the same memory.
   *
   * @param from first row
   * @param end behind the last
   * @return shares the buffer
   */
  public Tensor rows(long from, long end) {
    if (ndim == 0 || from < 0 || end < from || end > axes[0]) {
      throw RkvException.invalid("tensor: rows %d to %d of %d", from, end, ndim == 0 ? 0 : axes[0]);
    }
    long first = address + from * axes[MAX_AXES] * dtype.bytes();
    long firstScale = scale == 0 ? 0 : scale + from * axes[2 * MAX_AXES] * DType.F32.bytes();
    Tensor part = new Tensor(this, first, firstScale, scaleOwner);
    part.axes[0] = end - from;
    return part;
  }

  /**
   * This tensor with a factor for its elements, as quantised types have.
   *
   * @param factors direct, in the machine's byte order, from its position on
   * @param strides of the factors for each axis, in elements; 0 where all share one
   * @return keeps the factors alive too
   */
  public Tensor withScale(FloatBuffer factors, long... strides) {
    long[] shape = java.util.Arrays.copyOf(axes, ndim);
    checkAxes(ndim, strides.length);
    long first = Direct.ordered("scale", factors, false);
    checkBounds(DType.F32, Direct.bytes(factors), 0, shape, strides);
    return scaled(first, factors.duplicate(), strides);
  }

  /**
   * This tensor with a factor for its elements, by their address, unchecked.
   *
   * @param factors address of float
   * @param strides of the factors for each axis, in elements; 0 where all share one
   * @return a view
   */
  public Tensor withScaleAtAddress(long factors, long... strides) {
    checkAxes(ndim, strides.length);
    return scaled(factors, null, strides);
  }

  private Tensor scaled(long factors, Buffer factorsOwner, long[] strides) {
    Tensor made = new Tensor(this, address, factors, factorsOwner);
    System.arraycopy(strides, 0, made.axes, 2 * MAX_AXES, ndim);
    return made;
  }

  /**
   * The memory that this views; of a part, that of the whole.
   *
   * @return null for an address, else a duplicate of the buffer as it was given
   */
  public Buffer buffer() {
    return duplicate(owner);
  }

  /**
   * The elements of an F32 tensor that {@link #allocate} made, or of any F32 view from the buffer's
   * position on, in the order of the memory.
   *
   * @return shares the memory
   */
  public FloatBuffer floats() {
    if (dtype != DType.F32 || owner == null) {
      throw RkvException.invalid(
          "tensor: %s%s has no floats", dtype, owner == null ? " address" : "");
    }
    if (owner instanceof ByteBuffer bytes)
      return bytes.slice().order(bytes.order()).asFloatBuffer();
    return ((FloatBuffer) owner).slice();
  }

  /**
   * The type of the elements.
   *
   * @return as given
   */
  public DType dtype() {
    return dtype;
  }

  /**
   * The number of axes.
   *
   * @return 0 to 6
   */
  public int ndim() {
    return ndim;
  }

  /**
   * One extent.
   *
   * @param axis 0 to ndim - 1
   * @return elements
   */
  public long shape(int axis) {
    return axes[java.util.Objects.checkIndex(axis, ndim)];
  }

  /**
   * One stride.
   *
   * @param axis 0 to ndim - 1
   * @return elements
   */
  public long stride(int axis) {
    return axes[MAX_AXES + java.util.Objects.checkIndex(axis, ndim)];
  }

  /** slot: 0 q, 1 k, 2 v, 3 out. */
  void put(Arguments arguments, int slot) {
    arguments.set_tensor(slot, dtype.code(), address, ndim, axes, scale);
  }

  boolean readOnly() {
    return owner != null && owner.isReadOnly();
  }

  private static void checkAxes(int extents, int strides) {
    if (extents > MAX_AXES || strides != extents) {
      throw RkvException.invalid(
          "tensor: %d extents and %d strides, need as many of both and at most %d",
          extents, strides, MAX_AXES);
    }
  }

  private static long[] contiguous(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int axis = shape.length - 1; axis >= 0; --axis) {
      strides[axis] = stride;
      stride = multiply(stride, shape[axis]);
    }
    return strides;
  }

  /** Every element of a view must lie between position and limit. */
  private static void checkBounds(
      DType dtype, long bytes, long offset, long[] shape, long[] strides) {
    long low = offset;
    long high = offset;
    boolean empty = false;
    for (int axis = 0; axis < Math.min(shape.length, strides.length); ++axis) {
      if (shape[axis] < 0) throw RkvException.invalid("tensor: shape[%d] is %d", axis, shape[axis]);
      empty |= shape[axis] == 0;
      long reach = multiply(Math.max(shape[axis] - 1, 0), strides[axis]);
      if (reach < 0) {
        low = add(low, reach);
      } else {
        high = add(high, reach);
      }
    }
    if (empty) low = offset;
    long end = empty ? offset : add(high, 1);
    if (low < 0 || multiply(end, dtype.bytes()) > bytes) {
      throw RkvException.tooSmall(
          String.format("tensor: elements %d to %d of the buffer", low, end - 1),
          bytes,
          multiply(end, dtype.bytes()));
    }
  }

  private static long multiply(long a, long b) {
    long high = Math.multiplyHigh(a, b);
    long low = a * b;
    if (high != low >> 63) throw RkvException.invalid("tensor: %d times %d overflows", a, b);
    return low;
  }

  private static long add(long a, long b) {
    long sum = a + b;
    if (((a ^ sum) & (b ^ sum)) < 0) throw RkvException.invalid("tensor: %d and %d overflow", a, b);
    return sum;
  }

  private static Buffer duplicate(Buffer buffer) {
    if (buffer instanceof ByteBuffer bytes) return bytes.duplicate().order(bytes.order());
    return buffer == null ? null : buffer.duplicate();
  }

  private static String kind(Buffer buffer) {
    String name = buffer.getClass().getSimpleName();
    for (Class<?> type = buffer.getClass(); type != Buffer.class; type = type.getSuperclass()) {
      if (type.getSuperclass() == Buffer.class) name = type.getSimpleName();
    }
    return name;
  }
}
