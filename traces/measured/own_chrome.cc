// Lowers the schedule again. Slices give the times of what they show; the times of hidden
// instructions (posts, and waits that blocked nothing) follow from the rule of the machine.
#include "traces/measured/own_chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/error.h"
#include "traces/schedules/native_schedule.h"
#include "traces/timelines/impossible_lanes.h"
#include "traces/timelines/made_with.h"
#include "traces/timelines/step_facts_json.h"

namespace bubblescope::traces {

namespace {

/// The rank as the trace writes it, the op, and whether the slice is a wait for that op's message.
using SliceKey = std::tuple<std::string, std::string, bool>;

/// The slices of every op in order of time: a rank may update its weights several times in a step.
using SliceIndex = std::map<SliceKey, std::vector<const ChromeSlice*>>;

SliceIndex index_slices(const ChromeEvents& events) {
  SliceIndex index;
  for (const ChromeSlice& slice : events.slices)
    index[{events.threads[slice.thread].process, slice.op, slice.name.starts_with("wait ")}]
        .push_back(&slice);
  for (auto& [_, slices] : index)
    std::stable_sort(slices.begin(), slices.end(),
                     [](const ChromeSlice* left, const ChromeSlice* right) {
                       return left->start < right->start;
                     });
  return index;
}

/// Gives the instructions with the same name their slices, one after the other.
class SliceQueue {
 public:
  explicit SliceQueue(const SliceIndex& index) : index_(index) {}

  /// Null if there is none, or none is left.
  const ChromeSlice* take(const SliceKey& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    std::size_t& next = next_[key];
    return next < found->second.size() ? found->second[next++] : nullptr;
  }

 private:
  const SliceIndex& index_;
  std::map<SliceKey, std::size_t> next_;
};

/// The ranks that compute but of which the trace has nothing at all.
std::vector<std::int32_t> find_missing_ranks(const Program& program, const SliceIndex& slices) {
  std::set<std::string> recorded;
  for (const auto& [key, _] : slices) recorded.insert(std::get<0>(key));
  std::set<std::int32_t> missing;
  for (const Instruction& one : program.instructions)
    if (is_compute(one.op.kind) && !recorded.contains(std::to_string(one.rank)))
      missing.insert(one.rank);
  return {missing.begin(), missing.end()};
}

/// Instructions of missing ranks take no time.
Timeline time_program(const Program& program, const SliceIndex& slices,
                      const std::vector<std::int32_t>& missing, const std::string& file) {
  Timeline timeline;
  SliceQueue queue(slices);
  std::vector<Nanos> lane_end(program.lanes.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const bool in_lane = instruction.lane != kNoLane;
    const std::string op = to_string(instruction.op);
    const ChromeSlice* const slice =
        instruction.role == Role::kPost
            ? nullptr
            : queue.take({std::to_string(instruction.rank), op, instruction.role == Role::kWait});
    const bool is_missing =
        std::find(missing.begin(), missing.end(), instruction.rank) != missing.end();
    if (slice == nullptr && instruction.role == Role::kWork && !is_missing)
      throw Error(
          fmt::format("{}: there is no slice for {} of rank {}, which its schedule has; "
                      "write the trace again",
                      file, op, instruction.rank));
    Nanos ready = in_lane ? lane_end[instruction.lane] : 0;
    for (const InstructionId awaited : program.dependencies_of(id))
      ready = std::max(ready, timeline.end[awaited]);
    const bool waits = instruction.role == Role::kWait;
    timeline.end.push_back(slice != nullptr ? slice->end : ready);
    timeline.start.push_back(slice != nullptr && !waits ? slice->start : timeline.end.back());
    if (in_lane) lane_end[instruction.lane] = timeline.end.back();
  }
  return timeline;
}

}  // namespace

bool is_own_trace(const ChromeEvents& events) {
  return events.other_data.contains("native_schedule");
}

MeasuredStep read_own_trace(const ChromeEvents& events, const std::string& file) {
  const std::string where = file + ": /otherData/native_schedule";
  auto validated =
      validate_schedule(read_native_schedule(events.other_data.at("native_schedule"), where));
  if (const auto* invalid = std::get_if<InvalidSchedule>(&validated))
    throw Error(fmt::format("{}: is not legal: {}", where, to_string(invalid->problems[0])));
  MeasuredStep step{"", std::get<ValidSchedule>(std::move(validated))};
  std::variant<Program, Deadlock> lowered =
      lower(step.schedule, read_lowering(events.other_data, file + ": /otherData"));
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    throw Error(fmt::format("{}: deadlocks: {}", where, to_string(*deadlock)));
  step.program = std::get<Program>(std::move(lowered));
  const SliceIndex slices = index_slices(events);
  step.missing_ranks = find_missing_ranks(step.program, slices);
  step.timeline = time_program(step.program, slices, step.missing_ranks, file);
  if (const auto text = events.other_data.find("native_facts"); text != events.other_data.end()) {
    ReadFacts read = parse_step_facts(text->second, {step.schedule, step.program, step.timeline},
                                      file + ": /otherData/native_facts");
    step.facts = std::move(read.facts);
    step.timeline.uncontended = std::move(read.uncontended);
    step.timeline.gaps = std::move(read.gaps);
  }
  if (const auto fault = find_impossible_lane(step.program, step.timeline))
    throw Error(file + ": " + *fault);
  const auto take = [&](const char* key, std::string& text) {
    const auto found = events.other_data.find(key);
    if (found != events.other_data.end()) text = found->second;
  };
  take("source", step.timeline.source);
  take("breakdown", step.timeline.breakdown);
  return step;
}

}  // namespace bubblescope::traces
