// Compares every kernel and GEMM on a GPU with the host.
#include "exec/gpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fake_kernels.h"
#include "tests/support/real_gpu.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kRows = 96;
constexpr std::int32_t kColumns = 416;  // more columns than a block has threads
constexpr std::int32_t kPeriod = 32;
constexpr std::size_t kEntries = std::size_t{kRows} * kColumns;

/// The same array on host and device.
struct Twin {
  std::vector<float> host;
  DeviceArray device;
};

/// Arrays that exist on the host and on the device. Which of the two a call returns is set by
/// `on_device`; the n-th call after restart() returns the same array on both.
class Arrays {
 public:
  Arrays(const exec::GpuRuntime& gpu, BubblescopeDtype dtype) : gpu_(gpu), dtype_(dtype) {}

  /// Entries in the dtype of the launch.
  void* values(std::size_t count = kEntries) { return next(draw(count), dtype_); }
  float* floats(std::size_t count = kEntries) {
    return static_cast<float*>(next(draw(count), kBubblescopeFloat32));
  }
  /// Adam's squares must not be negative.
  float* positive(std::size_t count = kEntries) {
    std::vector<float> drawn = draw(count);
    for (float& value : drawn) value = std::abs(value);
    return static_cast<float*>(next(drawn, kBubblescopeFloat32));
  }
  float* adam_step() { return static_cast<float*>(next({1, 0.1F, 0.01F}, kBubblescopeFloat32)); }
  /// A token per row; they are not compared.
  const std::int32_t* tokens() {
    std::vector<float> bits(kRows);
    for (std::size_t at = 0; at < bits.size(); ++at) {
      const auto token = static_cast<std::int32_t>(at * 7 % kRows);
      std::memcpy(&bits[at], &token, sizeof token);
    }
    void* const array = next(bits, kBubblescopeFloat32);
    tokens_ = used_ - 1;
    return static_cast<const std::int32_t*>(array);
  }

  void restart(bool on_device) {
    used_ = 0;
    on_device_ = on_device;
  }

  /// The largest relative difference of an array on the device from that on the host.
  double max_difference() const {
    double worst = 0;
    for (std::size_t at = 0; at < twins_.size(); ++at)
      if (at != tokens_)
        worst = std::max(worst,
                         relative_difference(download(gpu_, twins_[at].device), twins_[at].host));
    return worst;
  }

 private:
  std::vector<float> draw(std::size_t count) const { return draw_values(count, 100 + used_); }

  void* next(const std::vector<float>& drawn, BubblescopeDtype dtype) {
    if (used_ == twins_.size()) {
      Twin& created = twins_.emplace_back();
      created.host = stored(drawn, dtype);
      created.device = upload(gpu_, created.host, dtype);
    }
    Twin& twin = twins_[used_++];
    return on_device_ ? twin.device.memory.get() : twin.host.data();
  }

  const exec::GpuRuntime& gpu_;
  BubblescopeDtype dtype_;
  std::vector<Twin> twins_;
  std::optional<std::size_t> tokens_;
  std::size_t used_ = 0;
  bool on_device_ = false;
};

using MakeArguments = exec::KernelArguments (*)(Arrays&);

const MakeArguments kCases[] = {
    [](Arrays& a) -> exec::KernelArguments {
      return exec::EmbedArguments{a.values(), a.values(), a.values(), a.tokens(), kPeriod};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::EmbedGradArguments{a.floats(), a.floats(), a.values(), a.tokens(), kPeriod};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::NormArguments{a.values(), a.values(), a.values(kColumns)};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::NormGradArguments{a.values(), a.values(), a.values(kColumns),
                                     a.values(), a.values(), a.floats(kRows)};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::SoftmaxGradArguments{a.values(), a.values()};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::GeluArguments{a.values(), a.values()};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::GeluGradArguments{a.values(), a.values(), a.values()};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::CrossEntropyArguments{a.values(), a.tokens(), a.floats(kRows)};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::CrossEntropyGradArguments{a.values(), a.tokens(), 0.25F};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::MeanArguments{a.floats(1), a.floats(kColumns)};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::AddArguments{a.floats(), a.floats()};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::ScaleArguments{a.floats(), 0.25F};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::SgdArguments{a.floats(), a.values(), a.floats(), 0.25F};
    },
    [](Arrays& a) -> exec::KernelArguments {
      return exec::AdamArguments{a.floats(),   a.values(),   a.floats(),   0.25F,
                                 a.positive(), a.positive(), a.adam_step()};
    },
    [](Arrays& a) -> exec::KernelArguments { return exec::AdamStepArguments{a.adam_step()}; },
};

/// Runs a kernel on both sides and returns the largest difference of the results.
double run_both(const exec::GpuRuntime& gpu, MakeArguments arguments, BubblescopeDtype dtype) {
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  Arrays arrays(gpu, dtype);
  arrays.restart(false);
  const exec::KernelLaunch on_host{kBubblescopeFloat32, kRows, kColumns, arguments(arrays)};
  arrays.restart(true);
  const exec::KernelLaunch on_device{dtype, kRows, kColumns, arguments(arrays)};
  run_on_host(on_host);
  gpu.launch(on_device, stream.get());
  gpu.await_device(0);
  return arrays.max_difference();
}

TEST(GpuDevice, KernelsEqualTheHostInBothPrecisions) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  for (std::size_t at = 0; at < std::size(kCases); ++at) {
    SCOPED_TRACE("case " + std::to_string(at));
    EXPECT_LT(run_both(gpu, kCases[at], kBubblescopeFloat32), 1e-5);
    EXPECT_LT(run_both(gpu, kCases[at], kBubblescopeBfloat16), 1e-2);
  }
}

/// The softmax of 4 x `columns` rows, on device and host.
double causal_softmax_differs(const exec::GpuRuntime& gpu, std::int32_t columns,
                              BubblescopeDtype dtype) {
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  const auto size = static_cast<std::size_t>(columns);
  std::vector<float> host = stored(draw_values(4 * size * size, 3), dtype);
  const DeviceArray device = upload(gpu, host, dtype);
  const auto launch = [columns](void* scores, BubblescopeDtype of) {
    return exec::KernelLaunch{of, std::int64_t{4} * columns, columns,
                              exec::CausalSoftmaxArguments{scores, columns}};
  };
  gpu.launch(launch(device.memory.get(), dtype), stream.get());
  gpu.await_device(0);
  run_on_host(launch(host.data(), kBubblescopeFloat32));
  return relative_difference(download(gpu, device), host);
}

// Rows of 304 and 1000 columns are held by warps in either dtype, those of 2048 only in bfloat16,
// and longer ones, or ones that are not aligned, by blocks.
TEST(GpuDevice, CausalSoftmaxEqualsTheHost) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  for (const std::int32_t columns : {7, 300, 304, 1000, 2048, 2400}) {
    SCOPED_TRACE(columns);
    EXPECT_LT(causal_softmax_differs(gpu, columns, kBubblescopeFloat32), 1e-5);
    EXPECT_LT(causal_softmax_differs(gpu, columns, kBubblescopeBfloat16), 1e-2);
  }
}

TEST(GpuDevice, GainGradientsEqualTheHost) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  const std::vector<float> input = draw_values(std::size_t{kRows} * kColumns, 1);
  const std::vector<float> grad = draw_values(input.size(), 2);
  std::vector<float> inverses(kRows);
  for (std::int32_t row = 0; row < kRows; ++row) {
    float squares = 0;
    for (std::int32_t column = 0; column < kColumns; ++column)
      squares += input[static_cast<std::size_t>(row * kColumns + column)] *
                 input[static_cast<std::size_t>(row * kColumns + column)];
    inverses[static_cast<std::size_t>(row)] =
        1 / std::sqrt(squares / kColumns + exec::kNormEpsilon);
  }
  const std::array<DeviceArray, 4> arrays{
      upload(gpu, input, kBubblescopeFloat32), upload(gpu, grad, kBubblescopeFloat32),
      upload(gpu, inverses, kBubblescopeFloat32),
      upload(gpu, std::vector<float>(kColumns, -1.0F), kBubblescopeFloat32)};
  const auto launch = [](const exec::GainGradArguments& arguments) {
    return exec::KernelLaunch{kBubblescopeFloat32, kRows, kColumns, arguments};
  };
  const auto floats = [&](std::size_t at) { return static_cast<float*>(arrays[at].memory.get()); };
  gpu.launch(launch({floats(3), floats(0), floats(1), floats(2)}), stream.get());
  gpu.await_device(0);
  std::vector<float> expected(kColumns);
  run_on_host(launch({expected.data(), input.data(), grad.data(), inverses.data()}));
  EXPECT_LT(relative_difference(download(gpu, arrays[3]), expected), 1e-5);
}

struct GemmCase {
  bool left_turned;
  bool right_turned;
  bool adds;
  std::int32_t batch;
  BubblescopeDtype dtype;
  BubblescopeDtype target_dtype;
};

double multiply_both(const exec::GpuRuntime& gpu, const GemmCase& tested) {
  constexpr std::int32_t kSize[3] = {64, 48, 40};  // rows, K, columns
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  const exec::GpuHandle blas_handle = gpu.create_blas_handle({0, 16, 0, false});
  const auto batch = static_cast<std::size_t>(tested.batch);
  std::vector<float> left = stored(draw_values(batch * kSize[0] * kSize[1], 1), tested.dtype);
  std::vector<float> right = stored(draw_values(batch * kSize[1] * kSize[2], 2), tested.dtype);
  std::vector<float> target =
      stored(draw_values(batch * kSize[0] * kSize[2], 3), tested.target_dtype);
  const DeviceArray lefts = upload(gpu, left, tested.dtype);
  const DeviceArray rights = upload(gpu, right, tested.dtype);
  const DeviceArray targets = upload(gpu, target, tested.target_dtype);
  BubblescopeGemm gemm{};
  gemm.rows = kSize[0];
  gemm.k = kSize[1];
  gemm.columns = kSize[2];
  gemm.batch = tested.batch;
  gemm.left = {lefts.memory.get(), tested.left_turned ? kSize[0] : kSize[1], kSize[0] * kSize[1],
               tested.left_turned ? 1 : 0};
  gemm.right = {rights.memory.get(), tested.right_turned ? kSize[1] : kSize[2], kSize[1] * kSize[2],
                tested.right_turned ? 1 : 0};
  gemm.target = targets.memory.get();
  gemm.source = tested.adds ? gemm.target : nullptr;
  gemm.target_stride = kSize[2];
  gemm.target_step = kSize[0] * kSize[2];
  gemm.scale = 0.5F;
  gemm.dtype = tested.dtype;
  gemm.target_dtype = tested.target_dtype;
  gpu.multiply(blas_handle, gemm, stream.get());
  gpu.await_device(0);
  gemm.left.data = left.data();
  gemm.right.data = right.data();
  gemm.target = target.data();
  gemm.source = tested.adds ? target.data() : nullptr;
  run_on_host(gemm);
  return relative_difference(download(gpu, targets), target);
}

TEST(GpuDevice, ProductsEqualTheHostHoweverTheyAreTurned) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  constexpr auto kFloat = kBubblescopeFloat32;
  constexpr auto kHalf = kBubblescopeBfloat16;
  for (const bool left : {false, true})
    for (const bool right : {false, true})
      for (const bool adds : {false, true})
        for (const std::int32_t batch : {1, 3}) {
          SCOPED_TRACE(testing::Message() << left << right << adds << " batch " << batch);
          EXPECT_LT(multiply_both(gpu, {left, right, adds, batch, kFloat, kFloat}), 1e-5);
          EXPECT_LT(multiply_both(gpu, {left, right, adds, batch, kHalf, kHalf}), 1e-2);
          EXPECT_LT(multiply_both(gpu, {left, right, adds, batch, kHalf, kFloat}), 1e-4);
        }
}

/// The difference of a fused GELU, or its gradient, from the host's.
double gelu_within(const exec::GpuRuntime& gpu, BubblescopeEpilogue epilogue,
                   BubblescopeDtype dtype, bool keeps_sums = true) {
  constexpr std::int32_t kSize = 64;  // rows, K and columns
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  const exec::GpuHandle blas_handle = gpu.create_blas_handle({0, 16, 0, false});
  std::vector<float> values[4];  // left, right, aux, target
  std::vector<DeviceArray> arrays;
  for (std::uint64_t at = 0; at < 4; ++at) {
    values[at] = stored(draw_values(kSize * kSize, at), dtype);
    arrays.push_back(upload(gpu, values[at], dtype));
  }
  BubblescopeGemm gemm{};
  gemm.rows = gemm.k = gemm.columns = kSize;
  gemm.batch = 1;
  gemm.left = {arrays[0].memory.get(), kSize, 0, 0};
  gemm.right = {arrays[1].memory.get(), kSize, 0, epilogue == kBubblescopeGeluGrad ? 1 : 0};
  gemm.target = arrays[3].memory.get();
  gemm.target_stride = kSize;
  gemm.scale = 0.1F;
  gemm.dtype = gemm.target_dtype = dtype;
  gemm.epilogue = epilogue;
  gemm.aux = keeps_sums ? arrays[2].memory.get() : nullptr;
  if (!gpu.can_multiply(blas_handle, gemm)) return 0;  // training then does not fuse it
  gpu.multiply(blas_handle, gemm, stream.get());
  gpu.await_device(0);
  gemm.left.data = values[0].data();
  gemm.right.data = values[1].data();
  gemm.aux = keeps_sums ? values[2].data() : nullptr;
  gemm.target = values[3].data();
  run_on_host(gemm);
  return std::max(relative_difference(download(gpu, arrays[2]), values[2]),
                  relative_difference(download(gpu, arrays[3]), values[3]));
}

TEST(GpuDevice, ProductsWithEpiloguesEqualTheHostWhereTheLibraryHasThem) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  for (const auto epilogue : {kBubblescopeGelu, kBubblescopeGeluGrad}) {
    EXPECT_LT(gelu_within(gpu, epilogue, kBubblescopeBfloat16), 1e-2);
    EXPECT_LT(gelu_within(gpu, epilogue, kBubblescopeFloat32), 1e-2);  // tanh is approximate
  }
  EXPECT_LT(gelu_within(gpu, kBubblescopeGelu, kBubblescopeBfloat16, false), 1e-2);
}

}  // namespace
}  // namespace bubblescope::tests
