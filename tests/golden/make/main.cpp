// make_golden FOLDER: writes the golden vectors. Nothing of the library is linked.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "book.hpp"

int main(int argc, char** argv) {
  using namespace rkv_golden;
  if (argc != 2) {
    std::printf("usage: make_golden FOLDER\n");
    return 1;
  }
  const struct {
    const char* name;
    void (*add)(Book&);
  } files[] = {{"errors", add_errors}, {"lives", add_lives},   {"options", add_options},
               {"plans", add_plans},   {"stage1", add_stage1}, {"stage2", add_stage2}};
  int cases = 0;
  std::size_t bytes = 0;
  try {
    for (const auto& file : files) {
      Book book;
      file.add(book);
      const std::string path = std::string(argv[1]) + "/" + file.name + ".txt";
      std::ofstream out(path, std::ios::binary);
      out << book.text();
      if (!out.flush()) {
        std::printf("%s cannot be written\n", path.c_str());
        return 1;
      }
      std::printf("%-8s %3d cases %7zu bytes\n", file.name, book.cases(), book.text().size());
      cases += book.cases();
      bytes += book.text().size();
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  std::printf("%d cases, %zu bytes\n", cases, bytes);
  return 0;
}
