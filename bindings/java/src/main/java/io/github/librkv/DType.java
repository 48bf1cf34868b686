package io.github.librkv;

/** Element types of tensors. */
public enum DType {
  /** 32-bit float. */
  F32(4),
  /** IEEE half precision. */
  F16(2),
  /** bfloat16: the upper half of a 32-bit float. */
  BF16(2),
  /** FP8, 4 bits of exponent. */
  E4M3(1),
  /** FP8, 5 bits of exponent. */
  E5M2(1);

  private final int bytes;

  DType(int bytes) {
    this.bytes = bytes;
  }

  /**
   * Size of one element.
   *
   * @return bytes
   */
  public int bytes() {
    return bytes;
  }

  /** RKV_DTYPE_*. */
  int code() {
    return ordinal() + 1;
  }
}
