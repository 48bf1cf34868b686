package engine;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A GGUF file: its settings, and tensors of type F32, Q4_1 and Q8_0 widened to float. */
final class Gguf {
  private static final int F32 = 0;
  private static final int Q4_1 = 3;
  private static final int Q8_0 = 8;
  private static final int BLOCK = 32; // elements that share a scale

  private record Info(int columns, int rows, int type, long offset) {}

  private final ByteBuffer file;
  private final Map<String, Object> settings = new HashMap<>();
  private final Map<String, Info> tensors = new HashMap<>();
  private final long data; // where the tensors begin

  Gguf(Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path)) {
      file = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
    }
    file.order(ByteOrder.LITTLE_ENDIAN);
    if (file.getInt() != 0x46554747) throw new IOException(path + " is no GGUF file");
    int version = file.getInt();
    if (version != 2 && version != 3) throw new IOException("GGUF version " + version);
    long tensorCount = file.getLong();
    long settingCount = file.getLong();
    for (long i = 0; i < settingCount; ++i) settings.put(string(), value(file.getInt()));
    for (long i = 0; i < tensorCount; ++i) {
      String name = string();
      int axes = file.getInt();
      int columns = (int) file.getLong();
      int rows = 1;
      for (int axis = 1; axis < axes; ++axis) rows *= (int) file.getLong();
      tensors.put(name, new Info(columns, rows, file.getInt(), file.getLong()));
    }
    long alignment = ((Number) settings.getOrDefault("general.alignment", 32)).longValue();
    data = (file.position() + alignment - 1) / alignment * alignment;
  }

  int integer(String name) {
    return ((Number) settings.get(name)).intValue();
  }

  float real(String name) {
    return ((Number) settings.get(name)).floatValue();
  }

  /** A list of strings. */
  List<?> list(String name) {
    return (List<?>) settings.get(name);
  }

  /** A tensor of one axis. */
  float[] vector(String name) {
    return row(info(name), 0);
  }

  int rows(String name) {
    return info(name).rows;
  }

  int columns(String name) {
    return info(name).columns;
  }

  /** One output row of a matrix [out, in], in elements. */
  float[] row(String name, int row) {
    return row(info(name), row);
  }

  private Info info(String name) {
    Info info = tensors.get(name + ".weight");
    if (info == null) throw new IllegalArgumentException("the file has no " + name);
    return info;
  }

  private float[] row(Info info, int row) {
    float[] out = new float[info.columns];
    int blocks = info.columns / BLOCK;
    switch (info.type) {
      case F32 -> {
        int at = Math.toIntExact(data + info.offset + 4L * info.columns * row);
        file.slice(at, 4 * info.columns).order(file.order()).asFloatBuffer().get(out);
      }
      case Q4_1 -> { // scale, least value, 16 bytes: low halves first
        int at = Math.toIntExact(data + info.offset + 20L * blocks * row);
        for (int i = 0; i < info.columns; i += BLOCK, at += 20) {
          float scale = half(file.getShort(at));
          float least = half(file.getShort(at + 2));
          for (int j = 0; j < 16; ++j) {
            int two = file.get(at + 4 + j);
            out[i + j] = scale * (two & 15) + least;
            out[i + j + 16] = scale * (two >> 4 & 15) + least;
          }
        }
      }
      case Q8_0 -> { // scale, 32 signed bytes
        int at = Math.toIntExact(data + info.offset + 34L * blocks * row);
        for (int i = 0; i < info.columns; i += BLOCK, at += 34) {
          float scale = half(file.getShort(at));
          for (int j = 0; j < BLOCK; ++j) out[i + j] = scale * file.get(at + 2 + j);
        }
      }
      default -> throw new IllegalArgumentException("tensor type " + info.type);
    }
    return out;
  }

  private static float half(short bits) {
    int exponent = bits >> 10 & 31;
    int mantissa = bits & 1023;
    float size =
        exponent == 0
            ? Math.scalb((float) mantissa, -24)
            : Math.scalb((float) (1024 + mantissa), exponent - 25);
    return bits < 0 ? -size : size;
  }

  private String string() {
    byte[] bytes = new byte[Math.toIntExact(file.getLong())];
    file.get(bytes);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private Object value(int type) {
    return switch (type) {
      case 0, 1, 7 -> (int) file.get();
      case 2, 3 -> (int) file.getShort();
      case 4, 5 -> file.getInt();
      case 6 -> file.getFloat();
      case 8 -> string();
      case 9 -> {
        int of = file.getInt();
        long count = file.getLong();
        List<Object> all = new ArrayList<>();
        for (long i = 0; i < count; ++i) all.add(value(of));
        yield all;
      }
      case 10, 11 -> file.getLong();
      case 12 -> file.getDouble();
      default -> throw new IllegalArgumentException("setting type " + type);
    };
  }
}
