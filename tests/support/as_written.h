// Lets tests pass schedules that are written as text or op by op to functions that take valid ones:
// validates them on the way. Throws Error (Fault::kProblem) for illegal ones.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/memory_curve.h"
#include "sim/analysis/suggest_receives.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/defer_receives.h"
#include "sim/ir/lower.h"
#include "sim/ir/lower_dataflow.h"
#include "sim/ir/offload.h"
#include "sim/ir/post_messages.h"
#include "sim/ir/posted_steps.h"
#include "sim/ir/pytorch_lists.h"
#include "sim/ir/recompute.h"
#include "sim/ir/shard_stages.h"
#include "traces/schedules/pytorch_csv.h"

namespace bubblescope::tests {

inline std::variant<Program, Deadlock> lower(const Schedule& written,
                                             const LowerOptions& options = {}) {
  return lower(require_valid(written), options);
}
inline std::variant<Program, Deadlock> lower_by_sorting(const Schedule& written, Overlap overlap) {
  return lower_by_sorting(require_valid(written), overlap);
}
inline std::optional<Program> lower_directly(const Schedule& written, Overlap overlap) {
  return lower_directly(require_valid(written), overlap);
}
inline std::vector<RankOrder> make_posted_lists(const Schedule& written, ReceivePosting posting) {
  return make_posted_lists(require_valid(written), posting);
}
inline std::vector<RankOrder> post_messages(const Schedule& written) {
  return post_messages(require_valid(written));
}
inline std::vector<RankOrder> defer_receives(const Schedule& written,
                                             const std::vector<RankOrder>& posted) {
  return defer_receives(require_valid(written), posted);
}
inline std::vector<PostedSteps> find_steps(const Schedule& written, const Program& dataflow,
                                           const std::vector<RankOrder>& posted) {
  return find_steps(require_valid(written), dataflow, posted);
}
inline std::vector<ModeVerdict> check_modes(const Schedule& written,
                                            const LowerOptions& options = {}) {
  return check_messages(require_valid(written), options).modes;
}
inline std::optional<std::int32_t> eager_slots_needed(const Schedule& written,
                                                      const LowerOptions& options = {}) {
  return check_messages(require_valid(written), options).eager_slots;
}
inline std::optional<ReceiveSuggestion> suggest_receives(const Schedule& written,
                                                         const LowerOptions& options,
                                                         const CostModel& costs) {
  return suggest_receives(require_valid(written), options, costs);
}
inline Schedule with_recompute(const Schedule& written, const std::vector<Recompute>& of_stage) {
  return with_recompute(require_valid(written), of_stage);
}
inline Schedule with_offload(const Schedule& written, const OffloadPlan& plan) {
  return with_offload(require_valid(written), plan);
}
inline Schedule shard_stages(const Schedule& written,
                             PytorchRelease release = PytorchRelease::kFrom215) {
  return shard_stages(require_valid(written), release);
}
inline std::vector<RankOrder> make_pytorch_lists(const Schedule& written,
                                                 const PytorchListOptions& options = {}) {
  return make_pytorch_lists(require_valid(written), options);
}
inline std::string write_pytorch_csv_comms(const Schedule& written,
                                           const PytorchListOptions& options = {}) {
  return traces::write_pytorch_csv_comms(require_valid(written), options);
}
inline BubbleReport analyze(const Schedule& written, const Program& program,
                            const Timeline& timeline, const MemoryModel& memory = {}) {
  return analyze(require_valid(written), program, timeline, memory);
}
inline BubbleReport analyze_briefly(const Schedule& written, const Program& program,
                                    const Timeline& timeline, const MemoryModel& memory = {}) {
  return analyze_briefly(require_valid(written), program, timeline, memory);
}
inline std::vector<Peak> find_peaks(const Schedule& written, const Program& program,
                                    const Timeline& timeline, const MemoryModel& memory = {}) {
  return find_peaks(require_valid(written), program, timeline, memory);
}
inline std::vector<MemoryPoint> compute_memory_curve(const Schedule& written,
                                                     const Program& program,
                                                     const Timeline& timeline,
                                                     const MemoryModel& memory) {
  return compute_memory_curve(require_valid(written), program, timeline, memory);
}

}  // namespace bubblescope::tests
