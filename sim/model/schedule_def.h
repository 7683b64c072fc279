// What one schedule file registers: its name, its rules, its builder and the closed forms that it
// claims. The claims are tested for every registered schedule over all small shapes.
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

namespace bubblescope {

/// Whose legality rules and details of the order hold; without one, the widest correct ones.
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

/// What a builder is given. Schedules that look for a good order also read the costs.
struct ScheduleRequest {
  Shape shape;
  Profile profile = Profile::kNone;
  UniformCost cost;
  std::optional<CostModel> stage_costs = {};  ///< where given, instead of `cost`
  MemoryModel memory = {};  ///< its unit and caps bind the schedules that look for an order
  /// One forward more before the first backward, so that the two of a turn are independent and the
  /// experts' messages of one hide behind the other (Megatron-LM's combined 1F1B).
  bool moe_overlap = false;
  /// Ranks that share each stage; empty: one rank for every stage.
  std::vector<std::int32_t> replicas = {};
  /// Micro-batches that each rank of the first stage has on their way at most; empty: NOAM, as many
  /// as keep the pipeline full.
  std::optional<std::int32_t> in_flight = {};
};

/// Exact values that a schedule claims for uniform costs; what it does not claim is empty.
struct Claims {
  std::optional<Nanos> makespan;
  std::optional<Nanos> max_span;
  /// Per rank, in stage chunks (in slices of them, where sequences are cut) held until W (or the
  /// full backward) ends.
  std::vector<std::int64_t> peak_chunks;
};

struct ScheduleDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;  ///< one line for `list`
  std::string source;   ///< the paper or program that it comes from
  /// Chunks per rank where the schedule implies them; else --vpp says, `usual_chunks` unless given.
  std::optional<std::int32_t> implied_chunks = {};
  std::int32_t usual_chunks = 1;     ///< 2 where it is another schedule with 1
  std::int32_t usual_slices = 1;     ///< as many cuts where --slices gives none
  std::int32_t implied_slices = 1;   ///< cuts that the schedule makes by itself
  bool repeats_chunks = false;       ///< whether --vpp may be any multiple of the implied chunks
  bool groups_microbatches = false;  ///< whether --microbatch-group-size means something to it
  bool cuts_sequences = false;       ///< whether --slices above 1 means something to it
  bool overlaps_experts = false;     ///< whether --moe-overlap means something to it
  bool reads_costs = false;          ///< whether the order depends on costs and memory
  bool replicates_stages = false;    ///< whether --replicas means something to it
  bool limits_in_flight = false;     ///< whether --in-flight means something to it
  /// The frameworks that have it; --profile refuses the others.
  std::vector<Profile> profiles = {};
  /// What is wrong with a request, each in one sentence with the remedy; empty: it can be built.
  /// May be left out: then every shape can be built.
  std::function<std::vector<std::string>(const ScheduleRequest&)> refuse = {};
  /// Only called for requests that are not refused.
  std::function<Schedule(const ScheduleRequest&)> build;
  std::function<Claims(const ScheduleRequest&)> claims;
};

using ScheduleRegistrar = Registrar<ScheduleDef>;

/// The schedule of this name or alias. Throws Error with the nearest known name.
const ScheduleDef& find_schedule(const std::string& name);

/// Fills in the implied chunks, refuses what cannot be (Error, Fault::kProblem, with every reason)
/// builds the rest and validates it.
ValidSchedule build_schedule(const ScheduleDef& def, ScheduleRequest request);

/// The profile whose rules of orders and shapes hold: that of the framework's first release.
Profile rules_of(Profile profile);

/// "pytorch" and so on; empty for none.
std::string to_string(Profile profile);

}  // namespace bubblescope
