package engine;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Ids to text: each character of a vocabulary entry stands for one byte. */
final class Tokens {
  private final List<?> entries;
  private final int[] bytes = new int[512]; // of a character

  Tokens(Gguf file) {
    entries = file.list("tokenizer.ggml.tokens");
    int others = 256;
    for (int b = 0; b < 256; ++b) {
      boolean itself = b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE;
      bytes[itself ? b : others++] = b;
    }
  }

  String text(int[] ids) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int id : ids) {
      for (char c : ((String) entries.get(id)).toCharArray()) out.write(bytes[c & 511]);
    }
    return out.toString(StandardCharsets.UTF_8);
  }
}
