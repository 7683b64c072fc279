// One loop over the Program for 16 scenarios.
#include "sim/engine/simulate_batch.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/simulate_shared.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

/// Sets `ready` to the later of the two times, scenario by scenario. Compilers vectorize this form,
/// but not std::max().
inline void wait_for(Batch& ready, const Batch& end) {
  for (std::size_t at = 0; at < kBatchWidth; ++at)
    ready[at] = ready[at] > end[at] ? ready[at] : end[at];
}

/// The last instruction that depends on each one; itself if there is none.
std::vector<InstructionId> find_last_readers(const Program& program) {
  std::vector<InstructionId> last(program.size());
  for (InstructionId id = 0; id < program.size(); ++id) {
    last[id] = id;
    for (const InstructionId dependency : program.dependencies_of(id)) last[dependency] = id;
  }
  return last;
}

}  // namespace

BatchSimulator::BatchSimulator(const Program& program, std::span<const Nanos> gaps)
    : program_(program), gaps_(gaps), slot_of_(program.size()), lane_end_(program.lanes.size()) {
  std::vector<InstructionId> last = find_last_readers(program);
  std::vector<std::uint32_t> free;
  std::uint32_t slots = 0;
  for (InstructionId id = 0; id < program.size(); ++id) {
    for (const InstructionId dependency : program.dependencies_of(id)) {
      if (last[dependency] != id) continue;
      free.push_back(slot_of_[dependency]);
      // A dependency may be listed twice.
      last[dependency] = dependency;
    }
    if (free.empty()) free.push_back(slots++);
    slot_of_[id] = free.back();
    // An end that nothing reads may be overwritten.
    if (last[id] != id) free.pop_back();
  }
  end_.resize(slots);
}

Batch BatchSimulator::run(const BatchDurations& durations) {
  for (Batch& end : lane_end_) end.fill(0);
  Batch makespan{};
  for (InstructionId id = 0; id < program_.size(); ++id) {
    const std::uint32_t lane = program_.instructions[id].lane;
    Batch ready = lane == kNoLane ? Batch{} : lane_end_[lane];
    if (!gaps_.empty() && gaps_[id] > 0)
      for (double& time : ready) time += static_cast<double>(gaps_[id]);
    for (const InstructionId dependency : program_.dependencies_of(id))
      wait_for(ready, end_[slot_of_[dependency]]);
    const Batch duration = durations(id);
    for (std::size_t at = 0; at < kBatchWidth; ++at) ready[at] += duration[at];
    end_[slot_of_[id]] = ready;
    if (lane == kNoLane)
      wait_for(makespan, ready);
    else
      lane_end_[lane] = ready;
  }
  for (const Batch& end : lane_end_) wait_for(makespan, end);
  return makespan;
}

std::vector<Nanos> simulate_batches(const Program& program, std::size_t scenarios,
                                    const std::function<BatchDurations(std::size_t)>& batch,
                                    std::span<const Nanos> gaps) {
  BatchSimulator simulator(program, gaps);
  std::vector<Nanos> makespans;
  makespans.reserve(scenarios);
  for (std::size_t block = 0; makespans.size() < scenarios; ++block) {
    const Batch ends = simulator.run(batch(block));
    const std::size_t count = std::min(kBatchWidth, scenarios - makespans.size());
    for (std::size_t at = 0; at < count; ++at) makespans.push_back(static_cast<Nanos>(ends[at]));
  }
  return makespans;
}

namespace {

constexpr double kMaxLoad = 0x1p62;

/// Traffic whose loads vary from scenario to scenario.
class ScaledTraffic {
 public:
  ScaledTraffic(const Traffic& traffic, const std::function<BatchDurations(std::size_t)>& lengths)
      : whole_(traffic), traffic_(traffic), lengths_(lengths) {}

  const Traffic& traffic() const { return traffic_; }

  void set_scenario(std::size_t scenario) {
    if (!lengths_) return;
    const std::size_t within = scenario % kBatchWidth;
    if (within == 0) {
      const BatchDurations lengths = lengths_(scenario / kBatchWidth);
      load_factors_.clear();
      for (const Flow& flow : whole_.flows) load_factors_.push_back(lengths(flow.instruction));
    }
    for (std::size_t flow = 0; flow < load_factors_.size(); ++flow) {
      const double load =
          static_cast<double>(whole_.flows[flow].load) * load_factors_[flow][within];
      if (load > kMaxLoad)
        throw Error(
            "with this noise a message has too many bytes; use a smaller "
            "`length_jitter`, or smaller messages");
      traffic_.flows[flow].load = std::max<Load>(1, std::llround(load));
    }
  }

 private:
  const Traffic& whole_;
  Traffic traffic_;
  const std::function<BatchDurations(std::size_t)>& lengths_;
  std::vector<Batch> load_factors_;
};

}  // namespace

std::vector<Nanos> simulate_batches(const Program& program, const Traffic& traffic,
                                    std::size_t scenarios,
                                    const std::function<BatchDurations(std::size_t)>& batch,
                                    const std::function<BatchDurations(std::size_t)>& lengths,
                                    std::span<const Nanos> gaps) {
  ScaledTraffic scaled(traffic, lengths);
  const SharedSimulator simulator(program, scaled.traffic(), gaps);
  std::vector<Nanos> makespans;
  std::vector<Batch> fixed(program.size());
  std::vector<Nanos> scenario_durations(program.size());
  for (std::size_t scenario = 0; scenario < scenarios; ++scenario) {
    const std::size_t within = scenario % kBatchWidth;
    if (within == 0) {
      const BatchDurations durations = batch(scenario / kBatchWidth);
      for (InstructionId id = 0; id < program.size(); ++id) fixed[id] = durations(id);
    }
    scaled.set_scenario(scenario);
    for (InstructionId id = 0; id < program.size(); ++id)
      scenario_durations[id] = static_cast<Nanos>(fixed[id][within]);
    const std::vector<Nanos> ends = simulator.run(scenario_durations).timeline.end;
    makespans.push_back(ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end()));
  }
  return makespans;
}

}  // namespace bubblescope::inline sim
