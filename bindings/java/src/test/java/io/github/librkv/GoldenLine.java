package io.github.librkv;

import java.util.ArrayList;
import java.util.List;

/** One directive of a golden-vector file; the format is tests/golden/README.md's. */
final class GoldenLine {
  /** What a file shows to be wrong, with its place. */
  static final class Mismatch extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Mismatch(String text) {
      super(text);
    }
  }

  final String place; // FILE:LINE
  final List<String> words = new ArrayList<>(); // before "!"
  Status status = Status.OK;
  String text = ""; // that the error's text contains

  GoldenLine(String place, String line) {
    this.place = place;
    if (line.startsWith("#")) return;
    String[] all = line.isEmpty() ? new String[0] : line.split(" +");
    for (int i = 0; i < all.length; ++i) {
      if (!all[i].equals("!")) {
        words.add(all[i]);
      } else {
        if (i + 2 >= all.length) throw fail("! STATUS WORD expected");
        status = Status.valueOf(all[i + 1]);
        text = all[i + 2];
        break;
      }
    }
  }

  Mismatch fail(String format, Object... values) {
    return new Mismatch(place + ": " + String.format(format, values));
  }

  String word(int index) {
    if (index >= words.size()) throw fail("%s: a word is missing", words.get(0));
    return words.get(index);
  }

  List<String> from(int index) {
    return words.subList(Math.min(index, words.size()), words.size());
  }

  long integer(int index) {
    return integer(word(index));
  }

  int small(int index) {
    return (int) integer(index);
  }

  long integer(String word) {
    try {
      return Long.parseLong(word);
    } catch (NumberFormatException e) {
      throw fail("%s is no integer", word);
    }
  }

  double real(int index) {
    return real(word(index));
  }

  double real(String word) {
    switch (word) {
      case "inf":
        return Double.POSITIVE_INFINITY;
      case "-inf":
        return Double.NEGATIVE_INFINITY;
      case "nan":
        return Double.NaN;
      default:
        try {
          return Double.parseDouble(word);
        } catch (NumberFormatException e) {
          throw fail("%s is no number", word);
        }
    }
  }

  /** 0-3,7 as numbers, - as none. */
  List<Long> list(String word) {
    List<Long> out = new ArrayList<>();
    if (word.equals("-")) return out;
    for (String part : word.split(",")) {
      int dash = part.indexOf('-', 1);
      long first = integer(dash < 0 ? part : part.substring(0, dash));
      long last = dash < 0 ? first : integer(part.substring(dash + 1));
      if (last < first) throw fail("%s is no list", word);
      for (long value = first; value <= last; ++value) out.add(value);
    }
    return out;
  }

  /** FIELD=VALUE cut in two. */
  String[] field(String word) {
    int equals = word.indexOf('=');
    if (equals < 0) throw fail("%s: FIELD=VALUE expected", word);
    return new String[] {word.substring(0, equals), word.substring(equals + 1)};
  }

  void near(String what, double got, String word, double tolerance) {
    double want = real(word);
    boolean right =
        Double.isNaN(want)
            ? Double.isNaN(got)
            : Double.isInfinite(want)
                ? got == want
                : Math.abs(got - want) <= tolerance * Math.max(1, Math.abs(want));
    if (!right) throw fail("%s is %s, expected %s", what, got, word);
  }
}
