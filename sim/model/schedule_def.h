// A schedule's definition: its name, rules, builder and the closed forms that it claims. The claims
// are tested for every registered schedule over all small shapes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/named.h"
#include "sim/ir/registry.h"
#include "sim/ir/schedule.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// The framework whose rules and order a schedule follows; kNone: the most general correct ones.
enum class Profile : std::uint8_t {
  kNone,
  kPytorch,     ///< releases 2.6 to 2.14
  kPytorch215,  ///< since 2.15: the same orders, other lists of messages
  kMegatron,
  kDeepspeed,
  kColossalai,
  kDeepseek,
};

/// Every profile but none, in the order of the enum.
inline constexpr std::array<Named<Profile>, 6> kProfiles{{
    {Profile::kPytorch, "pytorch"},
    {Profile::kPytorch215, "pytorch-2.15"},
    {Profile::kMegatron, "megatron"},
    {Profile::kDeepspeed, "deepspeed"},
    {Profile::kColossalai, "colossalai"},
    {Profile::kDeepseek, "deepseek"},
}};

/// Whether one more forward runs before the first backward, so that the two ops of a turn do not
/// depend on each other and one hides the expert exchange of the other (Megatron's combined 1F1B).
enum class MoeOverlap : std::uint8_t {
  kNone,
  kTurns,  ///< the two ops of a turn run one after the other
  kPairs,  ///< they are an overlapped pair
};

/// The input of a builder. Schedules that search for an order also read the costs.
struct ScheduleRequest {
  Shape shape;
  Profile profile = Profile::kNone;
  UniformCost cost;
  std::optional<CostModel> stage_costs = {};  ///< if present, replaces `cost`
  MemoryModel memory = {};  ///< its unit and caps bind schedules that search for an order
  MoeOverlap moe_overlap = MoeOverlap::kNone;
  std::vector<std::int32_t> replicas = {};  ///< ranks that share each stage; empty: one each
  /// Maximum micro-batches in flight per rank of the first stage; empty: NOAM, a full pipeline.
  std::optional<std::int32_t> in_flight = {};
};

/// Exact values that a schedule claims for uniform costs; unclaimed values are empty.
struct Claims {
  std::optional<Nanos> makespan;
  std::optional<Nanos> max_span;
  /// Per rank, in stage chunks (or slices of them) held until W or the full backward ends.
  std::vector<std::int64_t> peak_chunks;
};

struct ScheduleDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;  ///< one line for `list`
  std::string source;   ///< the paper or program that it comes from
  /// Chunks per rank if the schedule fixes them; else users choose them.
  std::optional<std::int32_t> implied_chunks = {};
  std::int32_t default_chunks = 1;  ///< 2 if the schedule with 1 has another name
  std::int32_t default_slices = 1;  ///< of a sequence, where users choose none
  std::int32_t implied_slices = 1;  ///< slices that the schedule creates itself
  bool repeats_chunks = false;      ///< whether a rank may have any multiple of the implied chunks
  /// Whether its bubble without latency is at most 1F1B's here; empty: it does not say.
  std::function<bool(const ScheduleRequest&)> is_at_most_1f1b = {};
  bool groups_microbatches = false;  ///< whether it takes Shape::group_size
  bool needs_full_groups = false;  ///< whether a last group shorter than the ranks delays them all
  bool slices_sequences = false;   ///< whether it takes more than one slice
  bool overlaps_experts = false;   ///< whether it takes a MoeOverlap
  bool reads_costs = false;        ///< whether the order depends on costs and memory
  bool replicates_stages = false;  ///< whether it takes replicas of stages
  bool limits_in_flight = false;   ///< whether it takes ScheduleRequest::in_flight
  bool trains = true;              ///< whether it has backwards
  bool flushes = true;             ///< whether updates wait for every backward of the step
  bool splits_output_layer = false;  ///< whether each rank has a side stage, a shard of that layer
  std::vector<Profile> profiles = {};      ///< under which it is built; others are refused
  std::vector<Profile> other_orders = {};  ///< of frameworks whose order of it is not implemented
  /// Returns the problems of a request, each with the remedy; empty, or not set: it can be built.
  /// Call refuse_schedule(), which asks this about what the members above allow.
  std::function<std::vector<std::string>(const ScheduleRequest&)> refuse = {};
  std::function<Schedule(const ScheduleRequest&)> build = {};  ///< if not refused
  std::function<Claims(const ScheduleRequest&)> claims = {};
};

using ScheduleRegistrar = Registrar<ScheduleDef>;

/// The schedule of this name or alias. Throws Error with the nearest known name.
const ScheduleDef& find_schedule(std::string_view name);

/// Fills in the implied chunks, then builds the schedule without validating it. Throws Error with
/// all reasons to refuse: Fault::kUsage for what it never takes, kProblem for an impossible shape.
Schedule build_order(const ScheduleDef& def, ScheduleRequest request);
ValidSchedule build_schedule(const ScheduleDef& def, ScheduleRequest request);  ///< validated

/// The profile that defines orders and shapes: that of the framework's first release.
Profile resolve_profile(Profile profile);

std::string to_string(Profile profile);  ///< "pytorch" and so on; empty for kNone

}  // namespace bubblescope::inline sim
