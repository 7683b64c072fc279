// Finds settings that a user may not have meant.
#include "sim/predict/notes.h"

#include "sim/ir/op_kinds.h"
#include "sim/model/restage.h"

namespace bubblescope::inline sim {

std::vector<Note> find_cost_notes(const Schedule& schedule, const Config& config) {
  const auto* const table = std::get_if<CostTable>(&config.costs);
  if (table != nullptr && is_restaged(*table, schedule)) return {Note::kRestaged};
  if (table != nullptr && shortens_pairs(*table) && !has_pairs(schedule) &&
      has_kind(schedule, OpKind::kForward) && !schedule.forward_only)
    return {Note::kNoPairs};
  const auto* const uniform = std::get_if<UniformCosts>(&config.costs);
  if (uniform == nullptr || !has_kind(schedule, OpKind::kInputGrad) ||
      has_kind(schedule, OpKind::kBackward))
    return {};
  // Comparing a full backward other than I + W with split ones would be misleading.
  if (uniform->cost.halves_add_up()) return {};
  return {Note::kUnequalBackwards};
}

std::vector<Note> find_notes(const Schedule& schedule, const MemoryModel& memory,
                             const Config& config) {
  std::vector<Note> notes = find_cost_notes(schedule, config);
  if (!config.memory.cap.empty() && !memory.activation_bytes.empty())
    notes.push_back(Note::kCapInUnits);
  return notes;
}

}  // namespace bubblescope::inline sim
