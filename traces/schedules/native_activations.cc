// Reads and writes recomputation and offload of native schedules.
#include "traces/schedules/native_activations.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

#include "sim/ir/counted.h"
#include "sim/ir/recompute.h"

namespace bubblescope::traces {

namespace {

Recompute read_recompute(const JsonNode& node) {
  if (const std::optional<Recompute> known = find_recompute(node.text())) return *known;
  node.refuse("must be 'none', 'selective' or 'full'");
}

void expect_size(const JsonNode& node, std::size_t size, const char* what) {
  if (node.size() == size) return;
  node.refuse(fmt::format("has {} for {}; give one per {}", counted(node.size(), "entry"),
                          counted(size, what), what));
}

}  // namespace

void read_activation_keys(const JsonNode& node, Schedule& schedule) {
  if (const auto recompute = node.find("recompute")) {
    expect_size(*recompute, static_cast<std::size_t>(schedule.stages()), "stage");
    for (std::size_t stage = 0; stage < recompute->size(); ++stage)
      schedule.recompute_of_stage.push_back(read_recompute((*recompute)[stage]));
  }
  if (const auto targets = node.find(kOffloadTargets)) {
    expect_size(*targets, static_cast<std::size_t>(schedule.shape.ranks), "rank");
    schedule.offload_target_of_rank = host_offload_targets(schedule.shape.ranks);
    for (std::size_t rank = 0; rank < targets->size(); ++rank) {
      const JsonNode target = (*targets)[rank];
      if (target.is_null()) continue;
      const std::int32_t other = target.integer32(0, schedule.shape.ranks - 1);
      if (other == static_cast<std::int32_t>(rank))
        target.refuse("is the rank itself; write null for a rank that offloads to the host");
      schedule.offload_target_of_rank[rank] = other;
    }
  }
}

void write_activation_keys(JsonWriter& json, const Schedule& schedule) {
  if (!schedule.recompute_of_stage.empty()) {
    json.line(1).key("recompute").begin_array();
    for (const Recompute recompute : schedule.recompute_of_stage) json.value(name(recompute));
    json.end_array();
  }
  if (schedule.offload_target_of_rank.empty()) return;
  json.line(1).key(kOffloadTargets.name).begin_array();
  for (std::size_t rank = 0; rank < schedule.offload_target_of_rank.size(); ++rank) {
    const std::int32_t target = schedule.offload_target_of_rank[rank];
    const bool host = target == static_cast<std::int32_t>(rank);
    host ? json.null() : json.value(target);
  }
  json.end_array();
}

}  // namespace bubblescope::traces
