/* rkv_audit: what a selection misses, against values computed here from the log-sum-exp and outputs
 * of rkv_attend. */
#include "twin.h"

#include <math.h>

static void setup(rig* r, int64_t budget, int64_t S) {
  rkv_cache_config config = small_config();
  config.token_budget = budget;
  rig_init(r, &config);
  rig_start(r, 0, S);
  for (int i = 0; i < 8; ++i) CHECK_STATUS(RKV_OK, rig_decode(r, 0, 0, S + i), &r->err);
}

static rkv_audit_result audit_of(rig* r, const rkv_decode_args* args) {
  rkv_audit_result result = ZERO(rkv_audit_result);
  CHECK_STATUS(RKV_OK, rkv_audit(r->cache, args, &result, NULL, &r->err), &r->err);
  return result;
}

/* k >= live rows: everything is selected, mass 1 and error 0 exactly. */
static void test_everything_selected(void) {
  rig r;
  setup(&r, 400, 150);
  rkv_decode_args args = *rig_row(&r, 0, 0, 157);
  args.selection = NULL;
  const rkv_audit_result a = audit_of(&r, &args);
  CHECK_INT(1, a.rows);
  CHECK(a.mass_mean == 1 && a.mass_min == 1);
  CHECK(a.error_mean == 0 && a.error_max == 0);
  CHECK(isnan(a.prompt_mass_mean)); /* COMPACT storage does not hold the whole prompt */
  rig_free(&r);
}

/* A caller's list: the share of exp(lse), per head; mean, least and the error of the output. */
static void test_given_selection(void) {
  rig r;
  setup(&r, 24, 150);
  const rkv_sequence_stats before = rig_stats(&r, 0, 0);
  const int32_t live = (int32_t)(before.kept + before.generated);
  for (int variant = 0; variant < 4; ++variant) {
    float all[64], lse[4];
    rkv_decode_args args = *rig_row(&r, 0, 0, 157);
    args.selection = NULL;
    CHECK_STATUS(RKV_OK, rkv_attend(r.cache, &args, NULL, &r.err), &r.err);
    memcpy(all, r.out, sizeof all);
    memcpy(lse, r.lse, sizeof lse);
    for (int head = 0; head < 2; ++head) {
      r.selection.counts[head] = variant == 3 ? 0 : 4 + head;
      for (int32_t i = 0; i < 4 + head; ++i) {
        r.selection.indices[head * r.selection.capacity + i] = variant == 0   ? i
                                                               : variant == 1 ? live - 5 - head + i
                                                                              : i * 7 + variant;
      }
    }
    args.selection = &r.selection;
    CHECK_STATUS(RKV_OK, rkv_attend(r.cache, &args, NULL, &r.err), &r.err);
    double mass_sum = 0, mass_min = 2, error_sum = 0, error_max = 0;
    for (int head = 0; head < 4; ++head) {
      const double mass = exp((double)r.lse[head] - (double)lse[head]);
      double difference = 0, norm = 0;
      for (int d = 0; d < 16; ++d) {
        const double x = all[head * 16 + d], y = r.out[head * 16 + d];
        difference += (x - y) * (x - y);
        norm += x * x;
      }
      const double error = sqrt(difference / norm);
      mass_sum += mass;
      mass_min = mass < mass_min ? mass : mass_min;
      error_sum += error;
      error_max = error > error_max ? error : error_max;
    }
    const rkv_audit_result a = audit_of(&r, &args);
    CHECK_INT(1, a.rows);
    CHECK(fabs(a.mass_mean - mass_sum / 4) < 1e-6 && fabs(a.mass_min - mass_min) < 1e-6);
    CHECK(fabs(a.error_mean - error_sum / 4) < 1e-6 && fabs(a.error_max - error_max) < 1e-6);
    CHECK(variant == 3 ? a.mass_mean == 0 && a.error_mean == 1
                       : a.mass_min > 0 && a.mass_mean < 0.5 && a.error_max > 0.01);
  }
  rig_free(&r);
}

/* The library's own selection: what decode selected at that step, later rows notwithstanding. */
static void test_own_selection(void) {
  rig r;
  setup(&r, 24, 150);
  for (int64_t p = 150; p < 158; ++p) {
    rkv_decode_args args = *rig_row(&r, 0, 0, p);
    args.attend_only = 1;
    CHECK_STATUS(RKV_OK, rkv_decode(r.cache, &args, NULL, &r.err), &r.err);
    const rkv_audit_result given = audit_of(&r, &args);
    args.selection = NULL;
    const rkv_audit_result own = audit_of(&r, &args);
    CHECK(memcmp(&given, &own, sizeof own) == 0 ||
          (given.mass_mean == own.mass_mean && given.mass_min == own.mass_min &&
           given.error_mean == own.error_mean && given.error_max == own.error_max));
    CHECK(own.mass_mean > 0 && own.mass_mean < 1);
  }
  rig_free(&r);
}

/* Several rows: the mean of each alone; padding does not count. Nothing but the result is written,
 * and the cache stays. */
static void test_rows(void) {
  rig r, twin;
  setup(&r, 24, 150);
  setup(&twin, 24, 150);
  double mass = 0, least = 2, error = 0, most = 0;
  for (int64_t p = 155; p < 158; ++p) {
    rkv_decode_args args = *rig_row(&r, 0, 0, p);
    args.selection = NULL;
    const rkv_audit_result a = audit_of(&r, &args);
    mass += a.mass_mean / 3;
    error += a.error_mean / 3;
    least = a.mass_min < least ? a.mass_min : least;
    most = a.error_max > most ? a.error_max : most;
  }
  r.seq[0] = -1, r.positions[0] = 1;
  for (int i = 1; i < 4; ++i) r.seq[i] = 0, r.positions[i] = 154 + i;
  rkv_decode_args args = *rig_rows(&r, 0, 4);
  args.selection = NULL;
  args.k = args.v = NULL;
  const rkv_audit_result a = audit_of(&r, &args);
  CHECK_INT(3, a.rows);
  CHECK(fabs(a.mass_mean - mass) < 1e-12 && a.mass_min == least);
  CHECK(fabs(a.error_mean - error) < 1e-12 && a.error_max == most);
  CHECK(rig_untouched(&r, 4));
  CHECK(twins_agree(&r, &twin));
  CHECK(twins_decode(&r, &twin, 0, 0, 158));
  for (int i = 0; i < 4; ++i) r.seq[i] = -1;
  args = *rig_rows(&r, 0, 4);
  args.selection = NULL;
  const rkv_audit_result none = audit_of(&r, &args);
  CHECK(none.rows == 0 && isnan(none.mass_mean) && isnan(none.error_max));
  rig_free(&r);
  rig_free(&twin);
}

int main(int argc, char** argv) {
  (void)argc;
  check_begin(argv[0]);
  CASE(test_everything_selected);
  CASE(test_given_selection);
  CASE(test_own_selection);
  CASE(test_rows);
  return check_end();
}
