// The manifest of a checkpoint lists the files that belong to it. It is written last: a checkpoint
// without a manifest is incomplete.
//
//   {"format":"bubblescope-checkpoint/1","step":4,
//    "training":[["schedule","1f1b"],["`pp`","2"],["`hidden_size`","32"],...],
//    "parts":[{"file":"step-4.part-0","bytes":123456,"checksum":"9f86d081884c7d65"},...],
//    "checksum":"2c26b46b68ffc68f"}
//
// The last checksum covers everything before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

/// One file of a checkpoint: the state of one process.
struct CheckpointPart {
  Bytes bytes = 0;
  std::string checksum;

  bool operator==(const CheckpointPart&) const = default;
};

struct CheckpointManifest {
  std::int32_t step = 0;  ///< the number of steps that were trained
  /// Everything on which the training depends, as names and values.
  std::vector<std::pair<std::string, std::string>> training;
  std::vector<CheckpointPart> parts;  ///< [process]

  bool operator==(const CheckpointManifest&) const = default;
};

/// Return the names of files, such as "step-4.json" and "step-4.part-0".
std::string manifest_name(std::int32_t step);
std::string part_name(std::int32_t step, std::size_t part);

std::string write_manifest(const CheckpointManifest& manifest);

/// Throws Error that names the file if any byte differs from what was written.
CheckpointManifest read_manifest(std::string_view text, const std::string& file);

}  // namespace bubblescope::traces
