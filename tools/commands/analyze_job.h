// The measured steps of one job, read and analyzed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/commands/job_costs.h"
#include "tools/commands/stream_texts.h"
#include "tools/commands/try_schedules.h"
#include "tools/inputs/predict.h"
#include "traces/measured/assemble_steps.h"
#include "traces/reports/iterations.h"

namespace bubblescope::tools {

/// Reads the traces and assembles their steps, without those that say little of the others; a file
/// of rules may say what names mean. Throws Error where none can be assembled, or where pipelines
/// differ. `streams` has the texts of the paths that are streams, and gives them away.
traces::AssembledSteps read_steps(const std::vector<std::string>& paths, const std::string& rules,
                                  StreamTexts& streams);

/// The memory model that the command line gives.
struct MemoryRequest {
  UniformMemory memory = {};
  bool replaces_model = false;  ///< of the files; otherwise its caps alone hold
};

/// The results that are requested besides the report.
struct JobOptions {
  bool fits_costs = false;               ///< --costs-out
  std::optional<double> split_backward;  ///< --split-b
  bool per_microbatch = false;           ///< --costs-per microbatch
  TryOptions tries;                      ///< --try; no schedules: none
};

/// Everything about the measured steps: the mean report, and the representative step.
struct Analysis {
  TimedStep shown;
  traces::Iterations iterations = {};
  BubbleReport median = {};       ///< report of the drawn step
  std::string median_label = {};  ///< "replica 0 step 23"
  std::optional<JobCosts> costs = {};
  std::optional<TriedSchedules> tried = {};

  bool is_trusted() const { return iterations.trust.verdict != traces::Verdict::kNone; }
};

/// Analyzes the steps. Memory is counted as their files say, in micro-batches, or as requested.
/// Costs and tries are missing where the steps are not trusted. Throws Error if costs are asked for
/// and no step has all its replicas.
Analysis analyze_steps(traces::AssembledSteps read, const MemoryRequest& memory,
                       const JobOptions& options);

}  // namespace bubblescope::tools
