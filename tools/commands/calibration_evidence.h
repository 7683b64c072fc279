// The measurements of calibrate, as "measured" in its cost file.
//
//   {"backend": "cuda", "work": "transformer", "device": "...",
//    "stages": [{"forward": {"mean": "10ns", "half_width_95": "1ns", "jitter": 0.1, "samples": 80},
//                ...}],
//    "message": {...}, "op_gap": {...},
//    "samples_by_busy_ranks": [{"forward": [80, 12]}],
//    "messages": {"by_size": [{"bytes": 65536, "time": "1500ns"}],
//                 "samples_by_busy_ranks": [40, 12]}}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/calibration/calibrate.h"
#include "exec/runtime/message_time.h"
#include "sim/model/cost_table.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

using SampleCounts = std::vector<std::int64_t>;  ///< by the number of busy ranks

struct MessageSamples {
  std::vector<exec::MessageTime> by_size;
  SampleCounts by_busy_ranks;  ///< empty: messages were not timed in turns
};

struct CalibrationEvidence {
  std::string backend = {};
  std::string work = {};
  std::string device = {};
  exec::Calibration calibration = {};
  /// [stage][kind]; empty: contention was not measured.
  std::vector<std::array<SampleCounts, kComputeKinds>> samples = {};
  std::optional<MessageSamples> messages = {};
};

/// Costs for a file, with the evidence for them.
struct CalibratedCosts {
  CostTable table;
  CalibrationEvidence measured;
};

/// Counts the samples of each estimate.
SampleCounts count_samples(const std::vector<std::optional<exec::Estimate>>& estimates);

/// Writes the object above.
void write_evidence_json(traces::JsonWriter& json, const CalibrationEvidence& evidence);

}  // namespace bubblescope::tools
