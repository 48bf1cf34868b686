package ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;

/** The structs of rkv.h that the example fills, as memory layouts; the names are the header's. */
final class Structs {
  static final StructLayout ERROR =
      MemoryLayout.structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("status"),
          JAVA_INT.withName("native_code"),
          JAVA_INT.withName("reserved"),
          MemoryLayout.sequenceLayout(240, ValueLayout.JAVA_BYTE).withName("text"));

  static final StructLayout TENSOR =
      MemoryLayout.structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("dtype"),
          ADDRESS.withName("data"),
          JAVA_INT.withName("ndim"),
          JAVA_INT.withName("reserved0"),
          MemoryLayout.sequenceLayout(6, JAVA_LONG).withName("shape"),
          MemoryLayout.sequenceLayout(6, JAVA_LONG).withName("strides"),
          ADDRESS.withName("scale"),
          MemoryLayout.sequenceLayout(6, JAVA_LONG).withName("scale_strides"),
          MemoryLayout.sequenceLayout(4, JAVA_LONG).withName("reserved"));

  /** The first fields; the library takes what a smaller struct lacks as 0. */
  static final StructLayout CONFIG =
      MemoryLayout.structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("device_type"),
          JAVA_INT.withName("device"),
          JAVA_INT.withName("layers"),
          JAVA_INT.withName("q_heads"),
          JAVA_INT.withName("kv_heads"),
          JAVA_INT.withName("head_dim"),
          JAVA_INT.withName("head_dim_v"),
          JAVA_INT.withName("kv_dtype"),
          JAVA_INT.withName("query_dtype"),
          JAVA_INT.withName("summary_dtype"),
          JAVA_INT.withName("storage"),
          JAVA_INT.withName("max_sequences"),
          JAVA_INT.withName("max_rows"),
          JAVA_INT.withName("max_prefills"),
          JAVA_INT.withName("num_threads"),
          JAVA_LONG.withName("max_prompt_tokens"),
          JAVA_LONG.withName("max_new_tokens"),
          JAVA_LONG.withName("token_budget"));

  static final StructLayout PREFILL =
      MemoryLayout.structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("seq"),
          JAVA_INT.withName("layer"),
          JAVA_INT.withName("reserved"),
          JAVA_LONG.withName("start"),
          JAVA_LONG.withName("prompt_tokens"),
          ADDRESS.withName("q"),
          ADDRESS.withName("k"),
          ADDRESS.withName("v"),
          ADDRESS.withName("paging"));

  static final StructLayout DECODE =
      MemoryLayout.structLayout(
          JAVA_INT.withName("struct_size"),
          JAVA_INT.withName("layer"),
          JAVA_INT.withName("rows"),
          JAVA_INT.withName("attend_only"),
          ADDRESS.withName("seq"),
          ADDRESS.withName("positions"),
          ADDRESS.withName("q"),
          ADDRESS.withName("k"),
          ADDRESS.withName("v"),
          ADDRESS.withName("paging"),
          ADDRESS.withName("selection"),
          ADDRESS.withName("out"),
          ADDRESS.withName("lse"),
          ADDRESS.withName("row_status"));

  private Structs() {}

  /** A struct of this layout, zero but for struct_size. */
  static MemorySegment make(Arena arena, StructLayout layout) {
    MemorySegment made = arena.allocate(layout);
    made.set(JAVA_INT, 0, (int) layout.byteSize());
    return made;
  }

  static void set(MemorySegment struct, StructLayout layout, String field, long value) {
    ValueLayout type = (ValueLayout) layout.select(PathElement.groupElement(field));
    long at = layout.byteOffset(PathElement.groupElement(field));
    if (type.byteSize() == 4) {
      struct.set(JAVA_INT, at, Math.toIntExact(value));
    } else {
      struct.set(JAVA_LONG, at, value);
    }
  }

  static void set(MemorySegment struct, StructLayout layout, String field, MemorySegment address) {
    set(struct, layout, field, address.address());
  }

  /** A contiguous F32 tensor [rows, heads, channels]; its address comes with each call. */
  static MemorySegment tensor(Arena arena, long rows, long heads, long channels) {
    MemorySegment made = make(arena, TENSOR);
    set(made, TENSOR, "dtype", 1);
    set(made, TENSOR, "ndim", 3);
    long shape = TENSOR.byteOffset(PathElement.groupElement("shape"));
    long strides = TENSOR.byteOffset(PathElement.groupElement("strides"));
    long[] extents = {rows, heads, channels};
    long[] steps = {heads * channels, channels, 1};
    for (int axis = 0; axis < 3; ++axis) {
      made.set(JAVA_LONG, shape + 8 * axis, extents[axis]);
      made.set(JAVA_LONG, strides + 8 * axis, steps[axis]);
    }
    return made;
  }

  static String text(MemorySegment error) {
    return error.getString(ERROR.byteOffset(PathElement.groupElement("text")));
  }
}
