// Writes a device: a key per line, a GEMM per line.
#include "traces/costs/gpu_file_writer.h"

#include <cmath>

#include "traces/costs/cost_file_writer.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

void write_link(JsonWriter& json, const char* key, const Link& link) {
  json.line(1).key(key).begin_object().member("latency", write_cost_duration(link.latency));
  json.key("gigabytes_per_second").fixed(link.bytes_per_second / kGiga, 2).end_object();
}

void write_gemm(JsonWriter& json, const MeasuredGemm& gemm) {
  const auto side = [](double length) { return std::llround(length); };
  json.line(2).begin_object().member("pass", name_of(kGemmPasses, gemm.shape.pass));
  json.member("rows", side(gemm.shape.rows)).member("inputs", side(gemm.shape.inputs));
  json.member("outputs", side(gemm.shape.outputs));
  json.key("teraflops").fixed(gemm.flops_per_second / kTera, 7).end_object();
}

}  // namespace

std::string write_gpu(const MeasuredGpu& gpu) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().line(1).member("like", gpu.like);
  json.line(1).member("measured_on", gpu.measured_on);
  if (gpu.peak_flops) json.line(1).key("peak_teraflops").fixed(*gpu.peak_flops / kTera, 4);
  json.line(1).key("reachable_teraflops").fixed(gpu.reachable_flops / kTera, 4);
  if (gpu.memory) json.line(1).member("memory", std::to_string(*gpu.memory) + "B");
  json.line(1).key("memory_gigabytes_per_second");
  json.fixed(gpu.memory_bytes_per_second / kGiga, 1);
  if (gpu.host) write_link(json, "host", *gpu.host);
  json.line(1).key("gemms").begin_array();
  for (const MeasuredGemm& gemm : gpu.gemms) write_gemm(json, gemm);
  json.line(1).end_array().line(0).end_object();
  return text + "\n";
}

}  // namespace bubblescope::traces
