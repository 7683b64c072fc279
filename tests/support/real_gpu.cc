// Finds the GPU and fills its memory.
#include "tests/support/real_gpu.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <random>

#include "sim/ir/error.h"

namespace bubblescope::tests {

namespace {

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float from_half(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// The program's module, in the folder above that of the tests.
std::string module_of_program() {
  const std::filesystem::path tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return tests.parent_path() / "bubblescope_cuda.so";
}

}  // namespace

const BubblescopeGpu* find_real_gpu() {
  try {
    const bool is_named = std::getenv("BUBBLESCOPE_CUDA_MODULE") != nullptr;
    return is_named ? &exec::open_gpu() : &exec::open_gpu(module_of_program());
  } catch (const Error& error) {
    std::cout << "no GPU: " << error.what() << "\n";
    return nullptr;
  }
}

DeviceArray upload(const exec::GpuRuntime& gpu, const std::vector<float>& values,
                   BubblescopeDtype dtype) {
  DeviceArray array{{}, values.size(), dtype};
  if (dtype == kBubblescopeFloat32) {
    array.memory = gpu.allocate(0, values.size() * sizeof(float));
    gpu.upload(array.memory.get(), values.data(), values.size() * sizeof(float));
    return array;
  }
  std::vector<std::uint16_t> halves;
  for (const float value : values) halves.push_back(to_half(value));
  array.memory = gpu.allocate(0, halves.size() * sizeof(std::uint16_t));
  gpu.upload(array.memory.get(), halves.data(), halves.size() * sizeof(std::uint16_t));
  return array;
}

std::vector<float> download(const exec::GpuRuntime& gpu, const DeviceArray& array) {
  std::vector<float> values(array.count);
  if (array.dtype == kBubblescopeFloat32) {
    gpu.download(values.data(), array.memory.get(), array.count * sizeof(float));
    return values;
  }
  std::vector<std::uint16_t> halves(array.count);
  gpu.download(halves.data(), array.memory.get(), array.count * sizeof(std::uint16_t));
  for (std::size_t at = 0; at < array.count; ++at) values[at] = from_half(halves[at]);
  return values;
}

std::vector<float> stored(std::vector<float> values, BubblescopeDtype dtype) {
  if (dtype == kBubblescopeBfloat16)
    for (float& value : values) value = from_half(to_half(value));
  return values;
}

std::vector<float> draw_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() >> 40) * 0x1p-22F - 2.0F;
  return values;
}

double relative_difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  double apart = 0;
  double size = 0;
  for (std::size_t at = 0; at < expected.size(); ++at) {
    const double difference = double{actual[at]} - double{expected[at]};
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    apart += difference * difference;
    size += double{expected[at]} * double{expected[at]};
  }
  return std::sqrt(apart / std::max(size, 1e-30));
}

}  // namespace bubblescope::tests
