// Saves a training while it runs, and resumes it:
//
//   resumes after step 4, from saved/step-4.json
//
// All processes of a run take part: each saves and reads its own stages. Rank 0 chooses the
// checkpoint and writes the manifest, when all others have saved.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/training/resumable_training.h"
#include "exec/training/training_identity.h"
#include "sim/ir/units.h"
#include "tools/flags/checkpoint_options.h"
#include "traces/checkpoints/checkpoint_folder.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

struct SavedCheckpoint {
  std::int32_t step = 0;
  Bytes bytes = 0;  ///< of all processes, without the manifest
  Nanos time = 0;   ///< during which no step could run
};

/// The checkpoints that a run has written.
struct CheckpointReport {
  std::string folder;
  std::int32_t every = 1;
  std::optional<std::int32_t> resumed_step = {};  ///< empty: the run began at step 0
  std::vector<SavedCheckpoint> saved = {};
};

class Checkpoints {
 public:
  /// `processes` is not copied. Creates the folder. Throws Error.
  Checkpoints(const CheckpointOptions& options, exec::TrainingIdentity identity,
              const exec::Processes& processes);

  /// Restores the training if the options say so, and returns the number of steps that it has. The
  /// run ends after `total` steps; a checkpoint of its end is not taken, because no step would be
  /// left to report. Throws Error if the folder belongs to another training, or if it has
  /// checkpoints and none is whole.
  std::int32_t begin(const exec::ResumableTraining& training, std::int32_t total);

  /// Call after each step. Throws Error if a process cannot write.
  void save_if_due(const exec::ResumableTraining& training);

  const CheckpointReport& report() const { return report_; }

 private:
  bool is_first() const { return processes_.here().value_or(0) == 0; }
  std::size_t own_part() const { return static_cast<std::size_t>(processes_.here().value_or(0)); }
  std::vector<traces::CheckpointManifest> agree_on_candidates(std::int32_t total);
  std::vector<std::string> find_candidates(std::int32_t total);
  void expect_usable(const traces::CheckpointManifest& newest, std::int32_t total) const;
  bool restore(const exec::ResumableTraining& training, const traces::CheckpointManifest& manifest);
  void restore_part(const exec::ResumableTraining& training,
                    const traces::CheckpointManifest& manifest, const std::string& state) const;
  std::vector<exec::Blob> gather_results(const std::function<void(exec::BlobWriter&)>& work);
  void print_once(const std::string& message) const;

  CheckpointOptions options_;
  exec::TrainingIdentity identity_;
  const exec::Processes& processes_;
  traces::CheckpointFolder folder_;
  CheckpointReport report_;
};

/// "2 checkpoints in saved: 41234 bytes and 1.31 ms each, 3.1 % of the time"; `step` is the
/// length of a step.
std::string to_string(const CheckpointReport& report, Nanos step);

/// Writes the member "checkpoints":
///
///   "checkpoints":{"folder":"saved","every":2,"resumed_step":null,
///                  "saved":[{"step":2,"bytes":41234,"time_ns":1312000},...],"time_share":0.031}
void write_checkpoints_json(traces::JsonWriter& json, const CheckpointReport& report, Nanos step);

}  // namespace bubblescope::tools
