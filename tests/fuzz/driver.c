/* Runs a fuzz entry without a fuzzer: files and folders of inputs, then `--runs N` random inputs of
 * fixed seeds (from number `--first`), within `--seconds N`. A failed check aborts. With clang,
 * leave this file out and link -fsanitize=fuzzer. */
#include "../capi/guard.h"
#include "input.h"

#include <dirent.h>
#include <signal.h>
#include <time.h>

static int runs_done;
static char running[4200]; /* the input that runs */

static void on_abort(int number) {
  (void)number;
  const ssize_t written = write(1, running, strlen(running));
  (void)written;
}

static void run_file(const char* path) {
  FILE* file = fopen(path, "rb");
  REQUIRE(file != NULL);
  static uint8_t data[1 << 16];
  const size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  snprintf(running, sizeof running, "input %s\n", path);
  LLVMFuzzerTestOneInput(data, size);
  ++runs_done;
}

static void run_path(const char* path) {
  DIR* folder = opendir(path);
  if (folder == NULL) {
    run_file(path);
    return;
  }
  for (struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    run_file(name);
  }
  closedir(folder);
}

static void run_random(int number) {
  static uint8_t data[2048];
  uint64_t state = 77000 + (uint64_t)number;
  const size_t size = (size_t)pick(&state, 1, sizeof data);
  for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)(next_random(&state) >> 40);
  snprintf(running, sizeof running, "random input %d\n", number);
  LLVMFuzzerTestOneInput(data, size);
  ++runs_done;
}

static const char* const* paths;
static int path_count, first_run, random_runs, seconds = 20;

static void test_inputs(void) {
  for (int i = 0; i < path_count; ++i) run_path(paths[i]);
  const time_t end = time(NULL) + seconds;
  for (int i = first_run; i < first_run + random_runs && time(NULL) < end; ++i) run_random(i);
  CHECK(runs_done > 0);
  printf("%d inputs\n", runs_done);
}

int main(int argc, char** argv) {
  check_begin(argv[0]);
  signal(SIGABRT, on_abort);
  const char** found = calloc((size_t)argc, sizeof *found);
  REQUIRE(found != NULL);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
      random_runs = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
      first_run = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = atoi(argv[++i]);
    } else {
      found[path_count++] = argv[i];
    }
  }
  paths = found;
  CASE(test_inputs);
  free(found);
  return check_end();
}
