// Builds every schedule in the measured shape and compares.
#include "tools/inputs/recognize_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/model/schedule_refusal.h"

namespace bubblescope::tools {

namespace {

constexpr std::int64_t kMaxOpsToRecognize = 200'000;
constexpr std::int64_t kMaxOpsToSearch = 4'000;  ///< schedules that order by costs search

bool builds(const ScheduleDef& def, Profile profile, const Schedule& schedule) {
  ScheduleRequest request;
  request.shape = schedule.shape;
  request.profile = profile;
  if (!refuse_schedule(def, request).empty()) return false;
  const Schedule built = def.build(request);
  return built.order == schedule.order && built.rank_of_stage == schedule.rank_of_stage &&
         built.after == schedule.after;
}

bool builds_in_any_profile(const ScheduleDef& def, const Schedule& schedule) {
  if (builds(def, Profile::kNone, schedule)) return true;
  for (const Profile profile : def.profiles)
    if (builds(def, profile, schedule)) return true;
  return false;
}

/// Whether a schedule equals another one with a single chunk per rank, or a single slice per
/// sequence.
bool needs_more_parts(const ScheduleDef& def, const Shape& shape) {
  return (takes_chunks(def) && shape.chunks == 1) || (def.slices_sequences && shape.slices == 1);
}

/// The schedule with this order among those that order by costs, or among the others. Those that
/// order by costs are built with the usual ones.
std::optional<std::string> recognize_among(const Schedule& schedule, bool read_costs) {
  std::optional<std::string> degenerate;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    const bool has_its_chunks =
        def.implied_chunks.value_or(schedule.shape.chunks) == schedule.shape.chunks;
    if (def.reads_costs != read_costs || !has_its_chunks) continue;
    if (!builds_in_any_profile(def, schedule)) continue;
    if (!needs_more_parts(def, schedule.shape)) return def.name;
    if (!degenerate) degenerate = def.name;
  }
  return degenerate;
}

}  // namespace

std::optional<std::string> recognize_schedule(const Schedule& schedule) {
  if (schedule.op_count() > kMaxOpsToRecognize) return {};
  std::optional<std::string> known = recognize_among(schedule, false);
  if (known || schedule.op_count() > kMaxOpsToSearch) return known;
  return recognize_among(schedule, true);
}

std::optional<std::string> recognize_runs(const Schedule& schedule, std::int32_t runs) {
  const std::int32_t count = schedule.shape.microbatches / runs;
  if (count * runs != schedule.shape.microbatches || !schedule.after.empty()) return {};
  Schedule one = schedule;
  one.shape.microbatches = count;
  for (RankOrder& order : one.order) {
    std::vector<RankOrder> orders(static_cast<std::size_t>(runs));
    for (Op op : order) {
      const std::int32_t run = op.microbatch / count;
      if (run >= runs) return {};
      op.microbatch -= run * count;
      orders[static_cast<std::size_t>(run)].push_back(op);
    }
    if (std::adjacent_find(orders.begin(), orders.end(), std::not_equal_to<>()) != orders.end())
      return {};
    order = orders.front();
  }
  return recognize_schedule(one);
}

}  // namespace bubblescope::tools
