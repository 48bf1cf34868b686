package engine;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON into maps, lists, strings, doubles, booleans and null. */
final class Json {
  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  static Object parse(String text) {
    Json json = new Json(text);
    Object value = json.value();
    if (json.peek() != 0) throw json.wrong("the end");
    return value;
  }

  private IllegalArgumentException wrong(String expected) {
    return new IllegalArgumentException("JSON at " + at + ": expected " + expected);
  }

  /** The next character that is no white space, 0 at the end. */
  private char peek() {
    while (at < text.length() && Character.isWhitespace(text.charAt(at))) ++at;
    return at < text.length() ? text.charAt(at) : 0;
  }

  private boolean take(char wanted) {
    if (peek() != wanted) return false;
    ++at;
    return true;
  }

  private void need(char wanted) {
    if (!take(wanted)) throw wrong("'" + wanted + "'");
  }

  private Object value() {
    char next = peek();
    if (next == '{') return object();
    if (next == '[') return list();
    if (next == '"') return string();
    int start = at;
    while (at < text.length() && ",]}\n\r\t ".indexOf(text.charAt(at)) < 0) ++at;
    String word = text.substring(start, at);
    return switch (word) {
      case "true" -> Boolean.TRUE;
      case "false" -> Boolean.FALSE;
      case "null" -> null;
      default -> Double.valueOf(word);
    };
  }

  private Map<String, Object> object() {
    Map<String, Object> out = new LinkedHashMap<>();
    need('{');
    if (take('}')) return out;
    do {
      String key = string();
      need(':');
      out.put(key, value());
    } while (take(','));
    need('}');
    return out;
  }

  private List<Object> list() {
    List<Object> out = new ArrayList<>();
    need('[');
    if (take(']')) return out;
    do {
      out.add(value());
    } while (take(','));
    need(']');
    return out;
  }

  private String string() {
    need('"');
    StringBuilder out = new StringBuilder();
    while (true) {
      if (at >= text.length()) throw wrong("'\"'");
      char c = text.charAt(at++);
      if (c == '"') return out.toString();
      if (c != '\\') {
        out.append(c);
        continue;
      }
      char escaped = text.charAt(at++);
      int code = "bfnrt".indexOf(escaped);
      if (escaped == 'u') {
        out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
        at += 4;
      } else {
        out.append(code < 0 ? escaped : "\b\f\n\r\t".charAt(code));
      }
    }
  }
}
