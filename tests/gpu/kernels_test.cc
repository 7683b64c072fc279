// Compares every kernel and GEMM on a GPU with the host.
#include "exec/gpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/fake_kernels.h"
#include "tests/support/real_gpu.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kRows = 96;
constexpr std::int32_t kColumns = 416;  // more columns than a block has threads
constexpr std::int32_t kPeriod = 32;

/// The arrays of a kernel, one letter each: n values in its dtype and f floats of rows x columns; g
/// and v a row of values or floats; e an embedding; p positions; r a float per row; t tokens; s
/// Adam's step; - nothing.
struct KernelCase {
  exec::Kernel kernel;
  char target;
  std::string inputs;
  std::string extras;
};

const KernelCase kCases[] = {
    {exec::Kernel::kEmbed, 'n', "ept-", "---"},
    {exec::Kernel::kEmbedGrad, '-', "n-t-", "fp-"},
    {exec::Kernel::kNorm, 'n', "ng--", "---"},
    {exec::Kernel::kNormGrad, 'n', "ngnn", "r--"},
    {exec::Kernel::kSoftmaxGrad, 'n', "n---", "---"},
    {exec::Kernel::kGelu, 'n', "n---", "---"},
    {exec::Kernel::kGeluGrad, 'n', "nn--", "---"},
    {exec::Kernel::kCrossEntropy, 'n', "--t-", "r--"},
    {exec::Kernel::kCrossEntropyGrad, 'n', "--t-", "---"},
    {exec::Kernel::kMean, '-', "v---", "r--"},
    {exec::Kernel::kAdd, '-', "f---", "f--"},
    {exec::Kernel::kScale, '-', "----", "f--"},
    {exec::Kernel::kSgd, 'n', "f---", "f--"},
    {exec::Kernel::kAdam, 'n', "fs--", "fpp"},
    {exec::Kernel::kAdamStep, '-', "----", "s--"},
};

/// The same array on host and device.
struct Twin {
  std::vector<float> host;
  DeviceArray device;
};

std::size_t count_of(char kind) {
  switch (kind) {
    case 'g':
    case 'v': return kColumns;
    case 'r':
    case 't': return kRows;
    case 's': return 3;
    default: return std::size_t{kRows} * kColumns;
  }
}

Twin make_twin(const exec::GpuRuntime& gpu, char kind, BubblescopeDtype dtype, std::uint64_t seed) {
  Twin twin;
  const bool has_dtype = kind == 'n' || kind == 'g' || kind == 'e';
  const BubblescopeDtype as = has_dtype ? dtype : kBubblescopeFloat32;
  twin.host = stored(draw_values(count_of(kind), seed), as);
  if (kind == 'p')  // also Adam's state, whose squares must not be negative
    for (float& value : twin.host) value = std::abs(value);
  if (kind == 's') twin.host = {1, 0.1F, 0.01F};
  if (kind == 't')
    for (std::size_t at = 0; at < twin.host.size(); ++at)
      reinterpret_cast<std::int32_t&>(twin.host[at]) = static_cast<std::int32_t>(at * 7 % kRows);
  twin.device = upload(gpu, twin.host, as);
  return twin;
}

/// Runs a kernel on both sides and returns the largest difference of the results.
double run_both(const exec::GpuRuntime& gpu, const KernelCase& tested, BubblescopeDtype dtype) {
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  BubblescopeLaunch on_host{};
  on_host.kernel = static_cast<std::int32_t>(tested.kernel);
  on_host.dtype = kBubblescopeFloat32;
  on_host.rows = kRows;
  on_host.columns = kColumns;
  on_host.period = kPeriod;
  on_host.scalars[0] = 0.25F;
  BubblescopeLaunch on_device = on_host;
  on_device.dtype = dtype;
  std::vector<Twin> twins(8);
  for (std::size_t at = 0; at < 8; ++at) {
    const char kind = at == 0  ? tested.target
                      : at < 5 ? tested.inputs[at - 1]
                               : tested.extras[at - 5];
    if (kind == '-') continue;
    const bool is_positions = kind == 'p' && tested.kernel == exec::Kernel::kEmbed;
    twins[at] = make_twin(gpu, is_positions ? 'e' : kind, dtype, 100 + at);
    void* const host = twins[at].host.data();
    void* const device = twins[at].device.memory.get();
    if (at == 0)
      on_host.target = host, on_device.target = device;
    else if (at < 5)
      on_host.inputs[at - 1] = host, on_device.inputs[at - 1] = device;
    else
      on_host.extra[at - 5] = host, on_device.extra[at - 5] = device;
  }
  run_on_host(on_host);
  gpu.launch(on_device, stream.get());
  gpu.await_device(0);
  double worst = 0;
  for (std::size_t at : {0, 5, 6, 7})
    if (!twins[at].host.empty())
      worst = std::max(worst, relative_difference(download(gpu, twins[at].device), twins[at].host));
  return worst;
}

TEST(GpuDevice, KernelsEqualTheHostInBothPrecisions) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  for (const KernelCase& tested : kCases) {
    SCOPED_TRACE("kernel " + std::to_string(static_cast<int>(tested.kernel)));
    EXPECT_LT(run_both(gpu, tested, kBubblescopeFloat32), 1e-5);
    EXPECT_LT(run_both(gpu, tested, kBubblescopeBfloat16), 1e-2);
  }
}

TEST(GpuDevice, CausalSoftmaxEqualsTheHost) {
  REQUIRE_GPU();
  const exec::GpuRuntime gpu(*find_real_gpu());
  const exec::GpuHandle stream = gpu.create_stream(0, nullptr);
  std::vector<float> host = draw_values(std::size_t{4} * 300 * 300, 3);
  const DeviceArray device = upload(gpu, host, kBubblescopeFloat32);
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(exec::Kernel::kCausalSoftmax);
  launch.rows = 4 * 300;
  launch.columns = launch.period = 300;
  launch.target = device.memory.get();
  gpu.launch(launch, stream.get());
  gpu.await_device(0);
  launch.target = host.data();
  run_on_host(launch);
  EXPECT_LT(relative_difference(download(gpu, device), host), 1e-5);
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
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(exec::Kernel::kGainGrad);
  launch.rows = kRows;
  launch.columns = kColumns;
  for (std::size_t at = 0; at < 3; ++at) launch.inputs[at] = arrays[at].memory.get();
  launch.extra[0] = arrays[3].memory.get();
  gpu.launch(launch, stream.get());
  gpu.await_device(0);
  std::vector<float> expected(kColumns);
  launch.inputs[0] = input.data();
  launch.inputs[1] = grad.data();
  launch.extra[0] = expected.data();
  run_on_host(launch);
  EXPECT_LT(relative_difference(download(gpu, arrays[3]), expected), 1e-5);
}

struct ProductCase {
  bool left_turned;
  bool right_turned;
  bool adds;
  std::int32_t batch;
  BubblescopeDtype dtype;
  BubblescopeDtype target_dtype;
};

double multiply_both(const exec::GpuRuntime& gpu, const ProductCase& tested) {
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
