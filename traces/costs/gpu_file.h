// Descriptions of devices without a preset, or that differ from one.
#pragma once

#include <string>
#include <string_view>

#include "sim/model/gpu.h"

namespace bubblescope::traces {

/// Reads a device:
///
///   {"like": "a100", "reachable_teraflops": 250, "per_node": 16,
///    "between_nodes": {"latency": "5us", "gigabytes_per_second": 50}}
///
/// `like` names a preset, whose rates of GEMMs keep their shares of those that the file states;
/// without it every key is required: "peak_teraflops" and "reachable_teraflops" (16-bit, dense),
/// "memory" (a size), "memory_gigabytes_per_second", "per_node", "within_node", "between_nodes" and
/// "host" (latency and one-way rate of a link). A calibration adds "measured_on", a text that is
/// not read, and "gemms": the rates in 16 bits that it measured, each
///   {"pass": "F", "rows": 4096, "inputs": 8192, "outputs": 1024, "teraflops": 610}
/// where passes are F, I and W. Throws Error with the JSON pointer of the first fault.
Gpu parse_gpu(std::string_view text, const std::string& file);
Gpu read_gpu(const std::string& path);

}  // namespace bubblescope::traces
