// The members that a measurement adds to a report in json:
//
//   "work":"spin","device":"...","gradients_match":null,"makespans_ns":[9000000,...],
//   "verification":"...",                           if something was trained and verified
//   "pools":{"peak_bytes":[...],"reserved_bytes":[...]},
//   "epilogues":[{"epilogue":"gelu","rows":8,"k":8,"columns":32,"fused":true},...],
//   "device_state":[{"bus":...,"before":{...},"during":{"samples":12,"sm_mhz":[1755,1980],...,
//                    "throttled_by":"power cap"},"after":{...},
//                    "steps":[{"samples":1,...},...]}],                  one per measured step
//   "training":{"steps":4,"losses":[4.2,4.1,3.9,3.8],"weights_digest":"9f86d081884c7d65"},
//   "checkpoints":{...},                            as in checkpoints.h
//   "activity":{"kernels":96,"copies":12,"clears":4,"lost":0,"untimed":0,"ops_ns":12400000,
//               "covered_ns":12015600,"longest":[{"name":"attention_kernel<float>",
//               "ns":5400000},...]}
//
// "device_state" is a sentence where no device could be read: "libnvidia-ml.so.1 was not found".
// Members that were renamed are written under their old names as well.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/measure.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

/// Writes the members above; those that the measurement lacks are left out.
void write_measurement_json(traces::JsonWriter& json, const Measurement& measurement);

// One member each.
void write_epilogues_json(traces::JsonWriter& json, const std::vector<exec::EpilogueUse>& uses);
void write_device_state_json(traces::JsonWriter& json, const exec::MonitoredDevices& monitored);
void write_activity_json(traces::JsonWriter& json, const exec::StepActivity& activity);

/// Returns a text such as "trained 4 steps, loss 4.2 to 3.8; digest of the weights
/// 9f86d081884c7d65".
std::string describe_trained(const exec::TrainingResult& trained);

}  // namespace bubblescope::tools
