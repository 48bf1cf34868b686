/* Rules 1 to 3: statuses, what is written to an rkv_error, calls that need no cache. */
#include "rig.h"

static void test_status_names(void) {
  static const char* const names[] = {
      "OK",        "INVALID_ARGUMENT", "UNSUPPORTED",  "OUT_OF_CAPACITY", "BUFFER_TOO_SMALL",
      "BAD_STATE", "DEVICE_ERROR",     "ABI_MISMATCH", "CORRUPT_DATA",    "OUT_OF_MEMORY",
      "INTERNAL"};
  for (int i = 0; i < 11; ++i) CHECK(strcmp(names[i], rkv_status_name(i)) == 0);
  const rkv_status other[] = {-1, 11, 1000, INT32_MIN, INT32_MAX};
  for (int i = 0; i < 5; ++i) CHECK(strcmp("UNKNOWN", rkv_status_name(other[i])) == 0);
  CHECK_INT(0, RKV_OK);
  CHECK_INT(5, RKV_BAD_STATE);
  CHECK_INT(10, RKV_INTERNAL);
}

static void test_versions(void) {
  CHECK_INT(RKV_ABI_VERSION, rkv_abi_version());
  const char* text = rkv_version_string();
  CHECK(text != NULL && text[0] >= '0' && text[0] <= '9' && strchr(text, '.') != NULL);
}

static void test_device_count(void) {
  rkv_error err = ZERO(rkv_error);
  int32_t count = -7;
  CHECK_STATUS(RKV_OK, rkv_device_count(RKV_DEVICE_CPU, &count, &err), &err);
  CHECK_INT(1, count);
  CHECK_STATUS(RKV_OK, rkv_device_count(RKV_DEVICE_CUDA, &count, &err), &err);
  CHECK(count >= 0);
  count = -7;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_device_count(2, &count, &err), &err);
  CHECK_TEXT(err.text, "device_type is 2");
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_device_count(-1, &count, &err), &err);
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_device_count(RKV_DEVICE_CPU, NULL, &err), &err);
  CHECK_TEXT(err.text, "count is NULL");
  CHECK_INT(-7, count);
}

/* On OK exactly status, native_code and text[0] change; on an error the text is all of it. */
static void test_what_is_written(void) {
  union {
    rkv_error err;
    uint8_t bytes[sizeof(rkv_error)];
  } u;
  memset(u.bytes, 0xEE, sizeof u.bytes);
  u.err.struct_size = sizeof u.err;
  int32_t count;
  CHECK_STATUS(RKV_OK, rkv_device_count(RKV_DEVICE_CPU, &count, &u.err), &u.err);
  for (size_t i = 0; i < sizeof u.bytes; ++i) {
    const int written = i < offsetof(rkv_error, reserved) || i == offsetof(rkv_error, text);
    if (!written && !CHECK_INT(0xEE, u.bytes[i])) break;
  }
  CHECK_INT(sizeof u.err, u.err.struct_size);
  CHECK_INT(RKV_OK, u.err.status);
  CHECK_INT(0, u.err.native_code);
  CHECK_INT(0, u.err.text[0]);

  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_device_count(99, &count, &u.err), NULL);
  CHECK_INT(RKV_INVALID_ARGUMENT, u.err.status);
  CHECK(memchr(u.err.text, 0, sizeof u.err.text) != NULL);
  CHECK_TEXT(u.err.text, "99");
}

/* Any struct_size: nothing behind it is written, and a text that does not fit is cut. */
static void test_small_and_large_errors(void) {
  enum { ROOM = 4096 };
  static uint8_t bytes[ROOM + 64];
  rkv_error whole = ZERO(rkv_error);
  int32_t count;
  CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_device_count(99, &count, &whole), NULL);
  for (uint32_t size = 0; size <= sizeof(rkv_error) + 40; ++size) {
    memset(bytes, 0xEE, sizeof bytes);
    rkv_error* err = (rkv_error*)(void*)bytes;
    err->struct_size = size;
    CHECK_STATUS(RKV_INVALID_ARGUMENT, rkv_device_count(99, &count, err), NULL);
    CHECK_INT(size, err->struct_size);
    for (size_t i = size < 4 ? 4 : size; i < sizeof bytes; ++i) {
      if (!CHECK_INT(0xEE, bytes[i])) return;
    }
    if (size >= 8) CHECK_INT(RKV_INVALID_ARGUMENT, err->status);
    if (size >= 12) CHECK_INT(0, err->native_code);
    if (size > offsetof(rkv_error, text)) {
      const size_t room = size - offsetof(rkv_error, text);
      CHECK(memchr(err->text, 0, room) != NULL);
      CHECK(strncmp(err->text, whole.text, strlen(err->text)) == 0);
      if (room > strlen(whole.text)) CHECK(strcmp(err->text, whole.text) == 0);
    }
    for (size_t i = sizeof(rkv_error); i < size; ++i) CHECK_INT(0, bytes[i]); /* unknown tail */
  }
}

static void test_no_error_struct(void) {
  int32_t count;
  CHECK_INT(RKV_OK, rkv_device_count(RKV_DEVICE_CPU, &count, NULL));
  CHECK_INT(RKV_INVALID_ARGUMENT, rkv_device_count(99, &count, NULL));
  rkv_cache_config config = small_config();
  rkv_cache* cache = NULL;
  CHECK_INT(RKV_OK, rkv_cache_create(&config, NULL, &cache, NULL));
  CHECK_INT(RKV_INVALID_ARGUMENT, rkv_sequence_open(cache, -1, NULL, NULL));
  CHECK_INT(RKV_BAD_STATE, rkv_sequence_close(cache, 0, NULL, NULL));
  CHECK_INT(RKV_INVALID_ARGUMENT, rkv_prefill(cache, NULL, NULL, NULL));
  CHECK_INT(RKV_INVALID_ARGUMENT, rkv_decode(cache, NULL, NULL, NULL));
  rkv_cache_destroy(cache);
}

/* An error that is used again carries nothing over from the failure before. */
static void test_error_is_reused(void) {
  rkv_error err = ZERO(rkv_error);
  int32_t count;
  (void)rkv_device_count(99, &count, &err);
  CHECK_STATUS(RKV_OK, rkv_device_count(RKV_DEVICE_CPU, &count, &err), &err);
  CHECK_INT(RKV_OK, err.status);
  CHECK_INT(0, err.text[0]);
}

/* A NULL cache is an error in every call and fine in destroy. */
static void test_null_cache(void) {
  rkv_error err = ZERO(rkv_error);
  const rkv_prefill_args prefill = ZERO(rkv_prefill_args);
  const rkv_decode_args step = ZERO(rkv_decode_args);
  const rkv_transfer_args transfer = ZERO(rkv_transfer_args);
  rkv_sequence_stats stats = ZERO(rkv_sequence_stats);
  rkv_audit_result audit = ZERO(rkv_audit_result);
  int64_t count = 0;
#define NULL_CACHE(call)                                                       \
  do {                                                                         \
    CHECK_STATUS(RKV_INVALID_ARGUMENT, call, &err);                            \
    CHECK_TEXT(err.text, "cache is NULL: it must come from rkv_cache_create"); \
  } while (0)
  NULL_CACHE(rkv_sequence_open(NULL, 0, NULL, &err));
  NULL_CACHE(rkv_sequence_close(NULL, 0, NULL, &err));
  NULL_CACHE(rkv_sequence_rewind(NULL, 0, 0, NULL, &err));
  NULL_CACHE(rkv_sequence_fork(NULL, 0, 1, NULL, &err));
  NULL_CACHE(rkv_sequence_export(NULL, &transfer, NULL, 0, &count, NULL, &err));
  NULL_CACHE(rkv_sequence_import(NULL, &transfer, "", 0, NULL, &err));
  NULL_CACHE(rkv_prefill(NULL, &prefill, NULL, &err));
  NULL_CACHE(rkv_decode_select(NULL, &step, NULL, &err));
  NULL_CACHE(rkv_attend(NULL, &step, NULL, &err));
  NULL_CACHE(rkv_decode(NULL, &step, NULL, &err));
  NULL_CACHE(rkv_stats(NULL, 0, 0, NULL, &stats, &err));
  NULL_CACHE(rkv_kept_positions(NULL, 0, 0, NULL, NULL, 0, &count, &err));
  NULL_CACHE(rkv_audit(NULL, &step, &audit, NULL, &err));
  rkv_cache_destroy(NULL);
}

/* NULL in every other pointer that a call needs. */
static void test_null_arguments(void) {
  rkv_error err = ZERO(rkv_error);
  rkv_cache_config config = small_config();
  rkv_plan plan = ZERO(rkv_plan);
  rkv_memory memory = ZERO(rkv_memory);
  rkv_cache* cache = NULL;
#define NULL_ARGUMENT(call, name)                   \
  do {                                              \
    CHECK_STATUS(RKV_INVALID_ARGUMENT, call, &err); \
    CHECK_TEXT(err.text, name " is NULL: ");        \
  } while (0)
  NULL_ARGUMENT(rkv_plan_make(NULL, NULL, 10, &plan, &err), "config");
  NULL_ARGUMENT(rkv_plan_make(&config, NULL, 10, NULL, &err), "plan");
  NULL_ARGUMENT(rkv_cache_memory(NULL, &memory, &err), "config");
  NULL_ARGUMENT(rkv_cache_memory(&config, NULL, &err), "memory");
  NULL_ARGUMENT(rkv_cache_create(NULL, NULL, &cache, &err), "config");
  CHECK(cache == NULL);
  NULL_ARGUMENT(rkv_cache_create(&config, NULL, NULL, &err), "cache");
  REQUIRE(rkv_cache_create(&config, NULL, &cache, &err) == RKV_OK);
  CHECK_INT(RKV_OK, rkv_sequence_open(cache, 0, NULL, &err));
  int64_t count = 0;
  rkv_audit_result audit = ZERO(rkv_audit_result);
  NULL_ARGUMENT(rkv_sequence_export(cache, NULL, NULL, 0, &count, NULL, &err), "args");
  NULL_ARGUMENT(rkv_sequence_import(cache, NULL, "", 0, NULL, &err), "args");
  NULL_ARGUMENT(rkv_prefill(cache, NULL, NULL, &err), "args");
  NULL_ARGUMENT(rkv_decode_select(cache, NULL, NULL, &err), "args");
  NULL_ARGUMENT(rkv_attend(cache, NULL, NULL, &err), "args");
  NULL_ARGUMENT(rkv_decode(cache, NULL, NULL, &err), "args");
  NULL_ARGUMENT(rkv_stats(cache, 0, 0, NULL, NULL, &err), "stats");
  NULL_ARGUMENT(rkv_kept_positions(cache, 0, 0, NULL, NULL, 0, NULL, &err), "count");
  NULL_ARGUMENT(rkv_audit(cache, NULL, &audit, NULL, &err), "args");
  const rkv_decode_args step = ZERO(rkv_decode_args);
  NULL_ARGUMENT(rkv_audit(cache, &step, NULL, NULL, &err), "result");
  rkv_cache_destroy(cache);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_status_names);
  CASE(test_versions);
  CASE(test_device_count);
  CASE(test_what_is_written);
  CASE(test_small_and_large_errors);
  CASE(test_no_error_struct);
  CASE(test_error_is_reused);
  CASE(test_null_cache);
  CASE(test_null_arguments);
  return check_end();
}
