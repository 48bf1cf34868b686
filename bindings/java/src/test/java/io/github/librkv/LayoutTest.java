package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Structs as the generated classes write them, against offsets and sizes of a C compiler. */
class LayoutTest {
  private record Field(int offset, int bytes) {}

  private static final Set<String> NOBODYS =
      Set.of("struct_size", "reserved", "plan", "dense_layers");

  /** Struct -> field -> place; "sizeof" is the size. */
  private static Map<String, Map<String, Field>> layout() throws IOException {
    Map<String, Map<String, Field>> structs = new LinkedHashMap<>();
    for (String line : Files.readAllLines(Path.of(System.getProperty("rkv.layout")))) {
      String[] words = line.split(" ");
      Map<String, Field> fields = structs.computeIfAbsent(words[0], name -> new LinkedHashMap<>());
      boolean size = words[1].equals("sizeof");
      fields.put(
          words[1],
          new Field(size ? 0 : Integer.parseInt(words[2]), Integer.parseInt(words[size ? 2 : 3])));
    }
    return structs;
  }

  private static ByteBuffer memory(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** Sets every field of a struct through its class and finds it, and nothing else, in memory. */
  private static void check(Class<?> type, Map<String, Field> fields) throws Exception {
    ByteBuffer memory = memory(fields.get("sizeof").bytes);
    Constructor<?> view = type.getDeclaredConstructor(long.class, boolean.class);
    view.setAccessible(true);
    Object struct = view.newInstance(Native.address_of(memory), false);
    int value = 1;
    Set<String> setters = new TreeSet<>();
    for (var entry : fields.entrySet()) {
      String name = entry.getKey();
      if (NOBODYS.contains(name) || name.equals("sizeof")) continue;
      Field field = entry.getValue();
      String camel = GoldenRunner.camel(name);
      String setter = "set" + camel.substring(0, 1).toUpperCase() + camel.substring(1);
      setters.add(setter);
      Method method = null;
      for (Method m : type.getMethods()) if (m.getName().equals(setter)) method = m;
      assertNotNull(method, type + "." + setter);
      method.setAccessible(true);
      Class<?> kind = method.getParameterTypes()[0];
      value += 1;
      int at = field.offset;
      if (kind == int.class) {
        method.invoke(struct, value);
        assertEquals(value, memory.getInt(at), name);
        assertEquals(4, field.bytes, name);
        memory.putInt(at, 0);
      } else if (kind == long.class) {
        method.invoke(struct, (long) value << 33 | 5);
        assertEquals((long) value << 33 | 5, memory.getLong(at), name);
        assertEquals(8, field.bytes, name);
        memory.putLong(at, 0);
      } else if (kind == float.class) {
        method.invoke(struct, value + 0.5f);
        assertEquals(value + 0.5f, memory.getFloat(at), name);
        assertEquals(4, field.bytes, name);
        memory.putFloat(at, 0);
      } else {
        method.invoke(struct, value + 0.25);
        assertEquals(value + 0.25, memory.getDouble(at), name);
        assertEquals(8, field.bytes, name);
        memory.putDouble(at, 0);
      }
      assertEquals(memory(memory.capacity()), memory, name + " wrote elsewhere");
    }
    for (Method m : type.getMethods()) {
      if (m.getName().startsWith("set") && !m.getName().contains("_")) {
        assertTrue(setters.contains(m.getName()), "no such field in C: " + m.getName());
      }
    }
  }

  @Test
  void numbersLieWhereCPutsThem() throws Exception {
    var layout = layout();
    check(NativeConfig.class, layout.get("rkv_cache_config"));
    check(NativeOptions.class, layout.get("rkv_sequence_options"));
    check(NativePlan.class, layout.get("rkv_plan"));
    check(NativeMemory.class, layout.get("rkv_memory"));
    check(NativeStats.class, layout.get("rkv_sequence_stats"));
    check(NativeAudit.class, layout.get("rkv_audit_result"));
  }

  @Test
  void denseLayersAreBits() throws IOException {
    Field field = layout().get("rkv_cache_config").get("dense_layers");
    ByteBuffer memory = memory(232);
    NativeConfig config = new NativeConfig(Native.address_of(memory), false);
    config.set_dense_layer(0);
    config.set_dense_layer(255);
    assertEquals(1, memory.getInt(field.offset));
    assertEquals(1 << 31, memory.getInt(field.offset + field.bytes - 4));
  }

  /** The records and the builder know every field of their structs, and no other. */
  @Test
  void recordsHaveEveryField() throws IOException {
    var layout = layout();
    Map<Class<?>, String> structs =
        Map.of(
            Plan.class, "rkv_plan",
            CacheMemory.class, "rkv_memory",
            SequenceStats.class, "rkv_sequence_stats",
            AuditResult.class, "rkv_audit_result",
            SequenceOptions.class, "rkv_sequence_options");
    for (var entry : structs.entrySet()) {
      Set<String> names = new TreeSet<>();
      for (RecordComponent component : entry.getKey().getRecordComponents()) {
        names.add(component.getName());
      }
      assertEquals(fields(layout.get(entry.getValue())), names, entry.getValue());
    }
    Set<String> names = new TreeSet<>();
    for (var field : CacheConfig.Builder.class.getDeclaredFields()) names.add(field.getName());
    assertEquals(fields(layout.get("rkv_cache_config")), names);
  }

  private static Set<String> fields(Map<String, Field> struct) {
    Set<String> names = new TreeSet<>();
    for (String name : struct.keySet()) {
      if (!Set.of("sizeof", "struct_size", "reserved").contains(name)) {
        names.add(GoldenRunner.camel(name));
      }
    }
    return names;
  }

  @Test
  void argumentsAreTheStructsOneBehindTheOther() throws IOException {
    var layout = layout();
    Map<String, Field> rows = layout.get("rkv_decode_args");
    Map<String, Field> tensor = layout.get("rkv_tensor");
    Map<String, Field> selection = layout.get("rkv_selection");
    Map<String, Field> paging = layout.get("rkv_paging");
    int q = size(rows);
    int selectionAt = q + 4 * size(tensor);
    int pagingAt = selectionAt + size(selection);
    assertEquals(pagingAt + size(paging), Arguments.bytes());

    ByteBuffer memory = memory((int) Arguments.bytes());
    Arguments arguments = new Arguments(Native.address_of(memory), false);
    arguments.init();
    arguments.set_rows(3, 11, 12);
    arguments.set_attend_only(1);
    arguments.set_lse(13);
    arguments.set_row_status(14);
    assertEquals(size(rows), memory.getInt(at(rows, "struct_size")));
    assertEquals(3, memory.getInt(at(rows, "rows")));
    assertEquals(11, memory.getLong(at(rows, "seq")));
    assertEquals(12, memory.getLong(at(rows, "positions")));
    assertEquals(1, memory.getInt(at(rows, "attend_only")));
    assertEquals(13, memory.getLong(at(rows, "lse")));
    assertEquals(14, memory.getLong(at(rows, "row_status")));

    long[] axes = {21, 22, 23, 24, 25, 26, 31, 32, 33, 34, 35, 36, 61, 62, 63, 64, 65, 66};
    for (int slot = 0; slot < 4; ++slot) {
      int base = q + slot * size(tensor);
      arguments.set_tensor(slot, 2, 77 + slot, 6, axes, 88);
      assertEquals(size(tensor), memory.getInt(base + at(tensor, "struct_size")));
      assertEquals(2, memory.getInt(base + at(tensor, "dtype")));
      assertEquals(77 + slot, memory.getLong(base + at(tensor, "data")));
      assertEquals(6, memory.getInt(base + at(tensor, "ndim")));
      for (int axis = 0; axis < 6; ++axis) {
        assertEquals(21 + axis, memory.getLong(base + at(tensor, "shape") + 8 * axis));
        assertEquals(31 + axis, memory.getLong(base + at(tensor, "strides") + 8 * axis));
        assertEquals(61 + axis, memory.getLong(base + at(tensor, "scale_strides") + 8 * axis));
      }
      assertEquals(88, memory.getLong(base + at(tensor, "scale")));
      arguments.clear_tensor(slot);
      assertEquals(0, memory.getInt(base + at(tensor, "struct_size")));
    }

    arguments.set_selection(2, 41, 42, 43);
    assertEquals(size(selection), memory.getInt(selectionAt + at(selection, "struct_size")));
    assertEquals(2, memory.getInt(selectionAt + at(selection, "space")));
    assertEquals(41, memory.getLong(selectionAt + at(selection, "indices")));
    assertEquals(42, memory.getLong(selectionAt + at(selection, "counts")));
    assertEquals(43, memory.getLong(selectionAt + at(selection, "capacity")));
    assertEquals(Native.address_of(memory) + selectionAt, memory.getLong(at(rows, "selection")));

    arguments.set_paging(51, 52, 53, 54, 55, 56);
    String[] names = {
      "block_tokens", "max_blocks", "row_stride", "block_table", "k_blocks", "v_blocks"
    };
    assertEquals(size(paging), memory.getInt(pagingAt + at(paging, "struct_size")));
    for (int i = 0; i < names.length; ++i) {
      assertEquals(51 + i, memory.getLong(pagingAt + at(paging, names[i])), names[i]);
    }
  }

  private static int size(Map<String, Field> struct) {
    return struct.get("sizeof").bytes;
  }

  private static int at(Map<String, Field> struct, String field) {
    return struct.get(field).offset;
  }

  @Test
  void enumsHaveTheLibrarysNumbers() {
    assertEquals(Native.RKV_DTYPE_F32, DType.F32.code());
    assertEquals(Native.RKV_DTYPE_F16, DType.F16.code());
    assertEquals(Native.RKV_DTYPE_BF16, DType.BF16.code());
    assertEquals(Native.RKV_DTYPE_E4M3, DType.E4M3.code());
    assertEquals(Native.RKV_DTYPE_E5M2, DType.E5M2.code());
    assertEquals(Native.RKV_DEVICE_CPU, CacheConfig.DeviceType.CPU.ordinal());
    assertEquals(Native.RKV_DEVICE_CUDA, CacheConfig.DeviceType.CUDA.ordinal());
    assertEquals(Native.RKV_STORAGE_COMPACT, CacheConfig.Storage.COMPACT.ordinal());
    assertEquals(Native.RKV_STORAGE_INDEXED, CacheConfig.Storage.INDEXED.ordinal());
    assertEquals(Native.RKV_UNIT_PAGES, CacheConfig.SelectionUnit.PAGES.ordinal());
    assertEquals(Native.RKV_UNIT_TOKENS, CacheConfig.SelectionUnit.TOKENS.ordinal());
    assertEquals(Native.RKV_STAGE1_ALL, CacheConfig.Stage1Domain.ALL.ordinal());
    assertEquals(Native.RKV_STAGE1_PREFIX_ONLY, CacheConfig.Stage1Domain.PREFIX_ONLY.ordinal());
    assertEquals(Native.RKV_SOFTMAX_TOKENS, CacheConfig.SelectionDomain.TOKENS.ordinal());
    assertEquals(Native.RKV_SOFTMAX_PAGES, CacheConfig.SelectionDomain.PAGES.ordinal());
    assertEquals(Native.RKV_POOL_MAX, CacheConfig.Pooling.MAX.ordinal());
    assertEquals(Native.RKV_POOL_AVG, CacheConfig.Pooling.AVG.ordinal());
    assertEquals(Native.RKV_TEMPERATURE_SPARQ, CacheConfig.Temperature.SPARQ.ordinal());
    assertEquals(Native.RKV_TEMPERATURE_SQRT_D, CacheConfig.Temperature.SQRT_D.ordinal());
    assertEquals(Native.RKV_SPACE_LIVE_ROW, Selection.Space.LIVE_ROW.ordinal());
    assertEquals(Native.RKV_SPACE_POSITION, Selection.Space.POSITION.ordinal());
    assertEquals(Native.RKV_SPACE_SLOT, Selection.Space.SLOT.ordinal());
    assertEquals(Native.RKV_INTERNAL, Status.INTERNAL.ordinal());
  }
}
