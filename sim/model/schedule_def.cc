// Finds and builds registered schedules.
#include "sim/model/schedule_def.h"

#include <algorithm>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/nearest_names.h"
#include "sim/model/schedule_refusal.h"

namespace bubblescope::inline sim {

namespace {

bool contains(const std::vector<Profile>& profiles, Profile profile) {
  return std::find(profiles.begin(), profiles.end(), profile) != profiles.end();
}

/// The profiles under which a schedule is built, as the end of a refusal.
std::string name_profiles(const ScheduleDef& def) {
  std::string names;
  for (const Profile profile : def.profiles)
    names += (names.empty() ? "" : ", ") + to_string(profile);
  return names.empty() ? "; leave `profile` out" : " (known in " + names + ")";
}

std::optional<std::string> refuse_chunks(const ScheduleDef& def, std::int32_t chunks) {
  const std::int32_t implied = def.implied_chunks.value_or(chunks);
  if (chunks == implied) return {};
  if (!def.repeats_chunks)
    return def.name + " always has " + counted(implied, "chunk") + " per rank; leave `vpp` out";
  if (chunks % implied == 0) return {};
  return "`vpp` must be a multiple of the " + counted(implied, "chunk") + " of " + def.name;
}

std::optional<std::string> refuse_slices(const ScheduleDef& def, std::int32_t slices) {
  if (slices == def.implied_slices || def.slices_sequences) return {};
  if (def.implied_slices == 1) return def.name + " does not slice sequences; leave `slices` out";
  return def.name + " always has " + counted(def.implied_slices, "slice") +
         " per sequence; leave `slices` out";
}

/// Refuses what the schedule takes in no shape.
std::vector<std::string> refuse_options(const ScheduleDef& def, const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  std::vector<std::string> reasons;
  if (shape.ranks < 1) reasons.push_back("`pp` must be at least 1");
  if (shape.chunks < 1) reasons.push_back("`vpp` must be at least 1");
  if (shape.microbatches < 1) reasons.push_back("`microbatches` must be at least 1");
  if (shape.slices < 1) reasons.push_back("`slices` must be at least 1");
  if (shape.group_size.value_or(1) < 1)
    reasons.push_back("`microbatch_group_size` must be at least 1");
  if (shape.group_size && !def.groups_microbatches)
    reasons.push_back(def.name + " has no groups; leave `microbatch_group_size` out");
  if (const auto reason = refuse_slices(def, shape.slices)) reasons.push_back(*reason);
  if (request.moe_overlap != MoeOverlap::kNone && !def.overlaps_experts)
    reasons.push_back(
        def.name + " does not pair a forward with a backward for `moe_overlap`, as " +
        "interleaved does (dualpipe and dualpipev have pairs without it); leave it out");
  if (!request.replicas.empty() && !def.replicates_stages)
    reasons.push_back(def.name + " has one rank for every stage; leave `replicas` out");
  if (request.in_flight && !def.limits_in_flight)
    reasons.push_back(def.name + " fixes the micro-batches in flight; leave `in_flight` out");
  if (const auto reason = refuse_chunks(def, shape.chunks)) reasons.push_back(*reason);
  return reasons;
}

std::vector<std::string> refuse_shape(const ScheduleDef& def, const ScheduleRequest& request) {
  std::vector<std::string> reasons = refuse_options(def, request);
  if (const std::string reason = refuse_profile(def, request.profile); !reason.empty())
    reasons.insert(reasons.begin(), reason + name_profiles(def));
  return reasons;
}

[[noreturn]] void throw_refusal(Fault fault, const ScheduleDef& def, Profile profile,
                                const std::vector<std::string>& reasons) {
  std::string text = def.name + " cannot be built";
  if (profile != Profile::kNone) text += " under `profile` " + to_string(profile);
  for (std::size_t at = 0; at < reasons.size(); ++at) text += (at == 0 ? ": " : "; ") + reasons[at];
  throw Error(fault, text);
}

/// The name of a class or a function in a framework's code, and the schedule that it runs.
struct CodeName {
  std::string_view theirs;
  std::string_view ours;
};

constexpr CodeName kCodeNames[] = {
    {"forward-backward-pipelining-with-interleaving", "interleaved"},
    {"forward-backward-pipelining-without-interleaving", "1f1b"},
    {"inferenceschedule", "forward-only"},
    {"scheduleforwardonly", "forward-only"},
    {"trainschedule", "1f1b"},
};

/// Returns nullptr for names that no framework has. PyTorch's other classes are "Schedule" and an
/// alias of ours: ScheduleZBVZeroBubble.
const ScheduleDef* find_by_code_name(std::string_view name) {
  constexpr std::string_view kPytorchClass = "schedule";
  const auto& registry = Registry<ScheduleDef>::instance();
  std::string plain = normalize_name(name);
  plain.erase(0, std::min(plain.find_first_not_of('-'), plain.size()));
  for (const CodeName& code : kCodeNames)
    if (code.theirs == plain) return registry.find(code.ours);
  if (!plain.starts_with(kPytorchClass)) return nullptr;
  return registry.find(plain.substr(kPytorchClass.size()));
}

}  // namespace

const ScheduleDef& find_schedule(std::string_view name) {
  const auto& registry = Registry<ScheduleDef>::instance();
  if (const ScheduleDef* def = registry.find(name)) return *def;
  if (name.find(',') != name.npos)
    throw Error(
        "'" + std::string(name) +
        "' are several schedules, and one is taken here; 'bubblescope compare' takes a list");
  const ScheduleDef* const meant = find_by_code_name(name);
  throw Error(
      "no schedule is called '" + std::string(name) + "'" +
      (meant ? "; here it is '" + meant->name + "'" : suggestion(nearest_names(name, registry))) +
      " ('bubblescope list schedules' shows them all)");
}

Shape fill_in_implied(const ScheduleDef& def, Shape shape) {
  if (shape.chunks == 1) shape.chunks = def.implied_chunks.value_or(1);
  if (shape.slices == 1) shape.slices = def.implied_slices;
  return shape;
}

void expect_counts(const ScheduleDef& def, const StatedCounts& stated) {
  std::vector<std::string> reasons;
  if (const auto reason =
          refuse_chunks(def, stated.chunks.value_or(def.implied_chunks.value_or(1))))
    reasons.push_back(*reason);
  if (const auto reason = refuse_slices(def, stated.slices.value_or(def.implied_slices)))
    reasons.push_back(*reason);
  if (!reasons.empty()) throw_refusal(Fault::kUsage, def, Profile::kNone, reasons);
}

std::string refuse_profile(const ScheduleDef& def, Profile profile) {
  if (profile == Profile::kNone || contains(def.profiles, resolve_profile(profile))) return {};
  return to_string(profile) + (contains(def.other_orders, profile)
                                   ? " has this schedule in an order that is not implemented"
                                   : " has no such schedule");
}

std::vector<std::string> refuse_schedule(const ScheduleDef& def, const ScheduleRequest& request) {
  std::vector<std::string> reasons = refuse_shape(def, request);
  if (!reasons.empty() || !def.refuse) return reasons;
  ScheduleRequest by_rules = request;
  by_rules.profile = resolve_profile(request.profile);
  reasons = def.refuse(by_rules);
  return reasons;
}

bool searches_under_caps(const ScheduleDef& def, ScheduleRequest request) {
  if (!def.reads_costs || !refuse_shape(def, request).empty()) return false;
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), 0);
  request.memory.cap_bytes.clear();
  return !refuse_schedule(def, request).empty();
}

Schedule build_order(const ScheduleDef& def, ScheduleRequest request) {
  request.shape = fill_in_implied(def, request.shape);
  const std::vector<std::string> reasons = refuse_schedule(def, request);
  if (!reasons.empty()) {
    const bool is_usage = !refuse_options(def, request).empty();
    throw_refusal(is_usage ? Fault::kUsage : Fault::kProblem, def, request.profile, reasons);
  }
  request.profile = resolve_profile(request.profile);
  Schedule schedule = def.build(request);
  schedule.name = def.name;
  schedule.shape = request.shape;
  return schedule;
}

ValidSchedule build_schedule(const ScheduleDef& def, ScheduleRequest request) {
  return require_valid(build_order(def, std::move(request)));
}

Profile resolve_profile(Profile profile) {
  return profile == Profile::kPytorch215 ? Profile::kPytorch : profile;
}

std::string to_string(Profile profile) { return name_of(kProfiles, profile); }

}  // namespace bubblescope::inline sim
