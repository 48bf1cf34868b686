// The same values in every layout that is not paged give the same bits.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "../support/cases.hpp"

namespace {

using namespace rkv_test;
using Bits = std::vector<std::uint8_t>;

struct Outcome {
  std::vector<std::vector<std::int64_t>> kept;
  std::vector<Bits> steps;
  bool operator==(const Outcome& o) const { return kept == o.kept && steps == o.steps; }
};

Outcome run(const rkv_cache_config& c, std::int64_t prompt, const Placement& at) {
  Outcome outcome;
  Cache cache(c);
  EXPECT_EQ(RKV_OK, cache.open(0)) << cache.text();
  const Prompt p(c, prompt, std::min<std::int64_t>(prompt, 32), 12);
  PromptTensors t(c, p, at);
  EXPECT_EQ(RKV_OK, cache.prefill(0, 0, prompt - p.q.count, prompt, &t.q, &t.kv.k, &t.kv.v))
      << describe(at) << ": " << cache.text();
  EXPECT_TRUE(t.unchanged()) << describe(at);
  outcome.kept = cache.positions(0);
  for (std::int64_t n = prompt; n < prompt + 6; ++n) {
    StepBuffers step(&cache, 1, at.step);
    const StepData data(c, 12, n);
    step.positions[0] = n;
    step.q.fill(data.q);
    step.k.fill(data.k);
    step.v.fill(data.v);
    EXPECT_EQ(RKV_OK, step.decode()) << describe(at) << ": " << cache.text();
    EXPECT_TRUE(step.sound()) << describe(at);
    outcome.steps.push_back(step.result_bits());
  }
  return outcome;
}

// B50: token-major, head-major with spare capacity, padded rows, odd strides and odd addresses,
// transposed, every other element; each tensor on its own, then all together.
TEST(Layouts, B50_EveryLayoutGivesTheSameBits) {
  for (int dtype : kDtypes) {
    for (int dim : {40, 64, 96, 128}) {
      for (std::int64_t prompt : {33, 700}) {
        rkv_cache_config c = make_config(6, 2, dim, 700, 6, 60, dtype);
        c.head_dim_v = dim == 96 ? 72 : 0;
        const Outcome plain = run(c, prompt, Placement());
        for (Layout layout : kAllLayouts) {
          Placement q, k, v, step, all;
          q.q = k.k = v.v = step.step = layout;
          all.q = all.k = all.v = all.step = layout;
          for (const Placement& at : {q, k, v, step, all}) {
            EXPECT_TRUE(plain == run(c, prompt, at)) << describe(c) << describe(at);
          }
        }
        Placement both;
        both.interleaved = true;
        EXPECT_TRUE(plain == run(c, prompt, both)) << describe(c) << "interleaved";
      }
    }
  }
}

// Every row 2^21 elements and more apart, in address space that is mostly not there.
class SparseTensor {
 public:
  SparseTensor(std::int32_t dtype, std::int64_t rows, std::int64_t heads, std::int64_t width,
               std::int64_t row_stride, std::int64_t head_stride)
      : rows_(rows), heads_(heads), width_(width), strides_{row_stride, head_stride} {
    elements_ = (rows - 1) * row_stride + (heads - 1) * head_stride + width;
    bytes_ = static_cast<std::size_t>(elements_ * dtype_size(dtype));
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    tensor_ = zeroed<rkv_tensor>();
    tensor_.dtype = dtype;
    tensor_.data = data_;
    tensor_.ndim = 3;
    const std::int64_t shape[3] = {rows, heads, width}, strides[3] = {row_stride, head_stride, 1};
    std::copy_n(shape, 3, tensor_.shape);
    std::copy_n(strides, 3, tensor_.strides);
  }
  ~SparseTensor() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  SparseTensor(const SparseTensor&) = delete;
  SparseTensor& operator=(const SparseTensor&) = delete;

  bool mapped() const { return data_ != MAP_FAILED; }
  void fill(const std::vector<double>& values) {
    auto value = values.begin();
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        for (std::int64_t d = 0; d < width_; ++d) {
          const std::int64_t index = i * strides_[0] + h * strides_[1] + d;
          store_element(tensor_.dtype,
                        static_cast<char*>(data_) + index * dtype_size(tensor_.dtype),
                        static_cast<float>(*value++));
        }
      }
    }
  }
  const rkv_tensor* get() const { return &tensor_; }

 private:
  std::int64_t rows_, heads_, width_, strides_[2], elements_;
  std::size_t bytes_;
  void* data_;
  rkv_tensor tensor_;
};

// B03, B46, B52, B55: offsets beyond 2^31 and 2^32 elements, by row and by head.
TEST(Layouts, B03_B46_B52_B55_OffsetsBeyond32Bits) {
  rkv_cache_config c = make_config(4, 2, 16, 300, 6, 30, RKV_DTYPE_F16);
  const Outcome plain = run(c, 300, Placement());
  const std::int64_t gib = std::int64_t{1} << 30;
  const std::int64_t strides[][2] = {{1 << 24, 64},           // rows: 300 * 2^24 > 2^32
                                     {32, (gib << 1) + 8},    // heads beyond 2^31
                                     {32, (gib << 2) + 24}};  // and beyond 2^32
  for (const auto& s : strides) {
    const Prompt p(c, 300, 32, 12);
    SparseTensor k(c.kv_dtype, 300, 2, 16, s[0], s[1]), v(c.kv_dtype, 300, 2, 16, s[0], s[1]);
    ASSERT_TRUE(k.mapped() && v.mapped());
    k.fill(p.k.data);
    v.fill(p.v.data);
    HostTensor q(c.kv_dtype, 32, 4, 16);
    q.fill(p.q.data);
    Cache cache(c);
    ASSERT_EQ(RKV_OK, cache.open(0));
    rkv_prefill_args args = zeroed<rkv_prefill_args>();
    args.start = 268;
    args.prompt_tokens = 300;
    args.q = q.get();
    args.k = k.get();
    args.v = v.get();
    ASSERT_EQ(RKV_OK, rkv_prefill(cache.get(), &args, nullptr, cache.error())) << cache.text();
    EXPECT_EQ(plain.kept, cache.positions(0));
    for (std::int64_t n = 300; n < 304; ++n) {
      StepBuffers step(&cache, 1);
      const StepData data(c, 12, n);
      step.positions[0] = n;
      step.q.fill(data.q);
      step.k.fill(data.k);
      step.v.fill(data.v);
      ASSERT_EQ(RKV_OK, step.decode());
      EXPECT_EQ(plain.steps[n - 300], step.result_bits());
    }
  }
}

// Head ranges of a shared buffer: K of 8 heads of which a rank reads two in the middle. B65, B66.
TEST(Layouts, B65_B66_ViewsIntoALargerBuffer) {
  rkv_cache_config c = make_config(5, 5, 96, 300, 6, 40, RKV_DTYPE_BF16);
  const Outcome plain = run(c, 300, Placement());
  const Prompt p(c, 300, 32, 12);
  auto memory = std::make_shared<GuardedMemory>(300 * 9 * 96 * 2, 2);  // nine heads a row
  HostTensor k(c.kv_dtype, 300, 5, 96, Strides{3 * 96, 9 * 96, 96, 1}, memory);
  k.fill(p.k.data);
  HostTensor v(c.kv_dtype, 300, 5, 96), q(c.kv_dtype, 32, 5, 96);
  v.fill(p.v.data);
  q.fill(p.q.data);
  Cache cache(c);
  ASSERT_EQ(RKV_OK, cache.open(0));
  ASSERT_EQ(RKV_OK, cache.prefill(0, 0, 268, 300, &q, &k, &v)) << cache.text();
  EXPECT_TRUE(k.unchanged());
  EXPECT_EQ(plain.kept, cache.positions(0));
}

}  // namespace
