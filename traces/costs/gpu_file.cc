// Reads a device. Values that the file does not give come from a preset.
#include "traces/costs/gpu_file.h"

#include <optional>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/model/find_gpu.h"
#include "sim/model/fit_gemm_rate.h"
#include "traces/costs/own_format.h"
#include "traces/files/file.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

const Gpu& preset_of(const JsonNode& like) {
  if (const GpuDef* def = find_gpu(like.text())) return def->gpu;
  like.refuse("no gpu is called '" + like.text() + "'" + suggest_gpu(like.text()));
}

Link link_of(const JsonNode& node) {
  node.expect_keys({"latency", "gigabytes_per_second"});
  const JsonNode latency = node.at("latency");
  const JsonNode rate = node.at("gigabytes_per_second");
  return {latency.duration(), rate.positive_number() * 1e9};
}

MeasuredGemm gemm_of(const JsonNode& node) {
  node.expect_keys({"pass", "rows", "inputs", "outputs", "teraflops"});
  const JsonNode pass = node.at("pass");
  const Named<GemmPass>* const known = find_named(kGemmPasses, pass.text());
  if (known == nullptr) pass.refuse("no pass is called '" + pass.text() + "'; write F, I or W");
  const auto number = [&](const char* key) {
    const JsonNode value = node.at(key);
    return value.positive_number();
  };
  return {{known->choice, number("rows"), number("inputs"), number("outputs")},
          number("teraflops") * 1e12};
}

/// Sets the GEMMs that were measured on the device.
void set_gemms(Gpu& gpu, const JsonNode& list) {
  gpu.kernels.gemms.clear();
  for (std::size_t at = 0; at < list.size(); ++at) gpu.kernels.gemms.push_back(gemm_of(list[at]));
  if (gpu.kernels.gemms.empty()) return;
  const FittedGemmRate fitted = fit_gemm_rate(gpu.kernels.gemms);
  gpu.kernels.sustained_flops = fitted.flops_per_second;
  gpu.kernels.half_size = fitted.half_size;
}

/// Sets the rates of large GEMMs. One that the file leaves out keeps its share of the next higher
/// one, as in the preset, so that a slower device is slower in every rate.
void set_rates(Gpu& gpu, const std::optional<JsonNode>& peak,
               const std::optional<JsonNode>& reached) {
  if (!peak && !reached) return;
  const double reached_share = gpu.reachable_flops / gpu.peak_flops;
  const double sustained_share = gpu.kernels.sustained_flops / gpu.reachable_flops;
  if (peak) {
    gpu.peak_flops = peak->positive_number() * 1e12;
    gpu.reachable_flops = reached_share * gpu.peak_flops;
  }
  if (reached) gpu.reachable_flops = reached->positive_number() * 1e12;
  gpu.kernels.sustained_flops = sustained_share * gpu.reachable_flops;
}

/// A bare number is of bytes, which is not what "memory": 80 means.
Bytes device_memory_of(const JsonNode& node) {
  constexpr Bytes kMinMemory = Bytes{1} << 20;
  const Bytes memory = node.bytes();
  if (memory < kMinMemory)
    node.refuse("is " + counted(memory, "byte") +
                "; write the memory of a device with its unit, such as \"80GiB\"");
  return memory;
}

}  // namespace

Gpu parse_gpu(std::string_view text, const std::string& file) {
  const JsonFile parsed(text, file);
  const JsonNode node = parsed.root();
  refuse_own_format(node, "a device");
  node.expect_keys({"like", "measured_on", "peak_teraflops", "reachable_teraflops", "memory",
                    "memory_gigabytes_per_second", "per_node", "within_node", "between_nodes",
                    "host", "gemms"});
  const auto like = node.find("like");
  Gpu gpu = like ? preset_of(*like) : Gpu{};
  /// Returns a member of the file; a missing one must come from the preset.
  const auto given = [&](const char* key) -> std::optional<JsonNode> {
    return like ? node.find(key) : node.at(key);
  };
  set_rates(gpu, given("peak_teraflops"), given("reachable_teraflops"));
  if (const auto memory = given("memory")) gpu.memory = device_memory_of(*memory);
  if (const auto rate = given("memory_gigabytes_per_second"))
    gpu.memory_bytes_per_second = rate->positive_number() * 1e9;
  if (const auto link = given("within_node")) {
    gpu.inside = link_of(*link);
    gpu.divides_links = false;
  }
  if (const auto devices = given("per_node")) gpu.per_node = devices->integer32(1, 65'536);
  if (const auto link = given("between_nodes")) gpu.outside = link_of(*link);
  if (const auto link = given("host")) gpu.host = link_of(*link);
  if (const auto gemms = node.find("gemms")) set_gemms(gpu, *gemms);
  if (gpu.reachable_flops > gpu.peak_flops)
    throw Error(file + ": more is reachable than the peak; correct reachable_teraflops");
  return gpu;
}

Gpu read_gpu(const std::string& path) { return parse_gpu(read_file(path), path); }

}  // namespace bubblescope::traces
