// Adds the activities of a step to the Programs of its replicas.
#include "sim/analysis/job_program.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "sim/analysis/waiting_messages.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

/// The clocks of a trace may differ by this much.
constexpr Nanos kTraceClockTolerance = 500'000;

/// When an activity runs, compared with the ops of its worker.
enum class ActivityPlace : std::uint8_t { kBefore, kDuring, kAfter };

struct PlacedActivity {
  const OuterActivity* activity = nullptr;
  ActivityPlace place = ActivityPlace::kAfter;
  InstructionId op = kNoInstruction;  ///< that waits for it, or that it waits for; in its replica
};

/// The compute ops of one worker: the first and the last of them.
struct FirstAndLast {
  InstructionId first = kNoInstruction;
  InstructionId last = kNoInstruction;
};

/// The ops of a rank, or only those of one of its stages. Both are empty if there are none.
FirstAndLast find_ops(const ObservedStep& replica, std::int32_t rank,
                      std::optional<std::int32_t> stage) {
  FirstAndLast span;
  const Timeline& timeline = replica.timeline;
  replica.for_each_compute([&](InstructionId id, const Instruction& one) {
    if (one.rank != rank || (stage && one.op.stage != *stage)) return;
    if (span.first == kNoInstruction || timeline.start[id] < timeline.start[span.first])
      span.first = id;
    if (span.last == kNoInstruction || timeline.end[id] >= timeline.end[span.last]) span.last = id;
  });
  return span;
}

/// Returns the last op of a rank that had ended when an activity began.
InstructionId find_op_before(const ObservedStep& replica, const OuterActivity& activity) {
  InstructionId found = kNoInstruction;
  replica.for_each_compute([&](InstructionId id, const Instruction& one) {
    if (one.rank == activity.rank &&
        replica.timeline.end[id] <= activity.start + kTraceClockTolerance)
      found = id;
  });
  return found;
}

PlacedActivity find_place(const ObservedStep& replica, const OuterActivity& activity) {
  FirstAndLast ops = find_ops(replica, activity.rank, activity.stage);
  if (ops.first == kNoInstruction) ops = find_ops(replica, activity.rank, {});
  if (ops.first == kNoInstruction) return {&activity, ActivityPlace::kBefore, kNoInstruction};
  if (activity.end <= replica.timeline.start[ops.first] + kTraceClockTolerance)
    return {&activity, ActivityPlace::kBefore, ops.first};
  const FirstAndLast all = find_ops(replica, activity.rank, {});
  if (activity.start + kTraceClockTolerance >= replica.timeline.end[all.last])
    return {&activity, ActivityPlace::kAfter, all.last};
  return {&activity, ActivityPlace::kDuring, find_op_before(replica, activity)};
}

class JobBuilder {
 public:
  JobBuilder(const ReplicatedStep& step, std::span<const std::string> names)
      : step_(step), names_(names), ranks_(static_cast<std::size_t>(step.front().program.ranks)) {}

  std::optional<JobProgram> build(std::span<const OuterActivity> activities) && {
    queue_activities(activities);
    while (add_ready(ActivityPlace::kBefore)) continue;
    add_pipelines();
    while (add_ready(ActivityPlace::kAfter)) continue;
    for (const ActivityQueue& queue : queues_)
      if (queue.next != queue.activities.size()) return {};
    job_.program.ranks = step_.front().program.ranks;
    job_.program.dependency_begin.push_back(
        static_cast<std::uint32_t>(job_.program.dependencies.size()));
    return std::move(job_);
  }

 private:
  using GroupKey = std::tuple<ActivityGroup, std::string, std::int32_t, std::size_t, std::size_t>;

  /// The activities of one worker, in order.
  struct ActivityQueue {
    std::vector<PlacedActivity> activities;
    std::vector<GroupKey> keys;
    std::size_t next = 0;
    InstructionId last = kNoInstruction;  ///< its instruction added last
  };

  void queue_activities(std::span<const OuterActivity> activities) {
    queues_.resize(step_.size() * ranks_);
    for (const OuterActivity& activity : activities)
      queues_[worker_of(activity)].activities.push_back(
          find_place(step_[static_cast<std::size_t>(activity.replica)], activity));
    for (std::size_t worker = 0; worker < queues_.size(); ++worker) {
      std::vector<PlacedActivity>& own = queues_[worker].activities;
      std::stable_sort(own.begin(), own.end(),
                       [](const PlacedActivity& left, const PlacedActivity& right) {
                         return std::tuple(left.place, left.activity->end, left.activity->start) <
                                std::tuple(right.place, right.activity->end, right.activity->start);
                       });
      std::map<std::string, std::int32_t> counts;
      for (const PlacedActivity& one : own) {
        queues_[worker].keys.push_back(key_of(*one.activity, counts[one.activity->name]++));
        members_[queues_[worker].keys.back()].push_back(worker);
      }
    }
  }

  std::size_t worker_of(const OuterActivity& activity) const {
    return static_cast<std::size_t>(activity.replica) * ranks_ +
           static_cast<std::size_t>(activity.rank);
  }

  /// Activities with the same key begin together.
  static GroupKey key_of(const OuterActivity& activity, std::int32_t count) {
    const auto replica = static_cast<std::size_t>(activity.replica);
    const auto rank = static_cast<std::size_t>(activity.rank);
    switch (activity.group) {
      case ActivityGroup::kAlone: return {activity.group, activity.name, count, replica, rank};
      case ActivityGroup::kReplicas: return {activity.group, activity.name, count, 0, rank};
      case ActivityGroup::kPipeline: return {activity.group, activity.name, count, replica, 0};
      case ActivityGroup::kJob: break;
    }
    return {activity.group, activity.name, count, 0, 0};
  }

  /// Adds every activity that all its workers have come to, and that is at most at this place.
  /// Returns whether there were any.
  bool add_ready(ActivityPlace max_place) {
    bool added = false;
    for (std::size_t worker = 0; worker < queues_.size(); ++worker)
      while (is_ready(worker, max_place)) {
        add_group(members_.at(queues_[worker].keys[queues_[worker].next]));
        added = true;
      }
    return added;
  }

  bool is_ready(std::size_t worker, ActivityPlace max_place) const {
    const ActivityQueue& queue = queues_[worker];
    if (queue.next == queue.activities.size()) return false;
    const GroupKey& key = queue.keys[queue.next];
    const std::vector<std::size_t>& members = members_.at(key);
    return std::all_of(members.begin(), members.end(), [&](std::size_t member) {
      const ActivityQueue& other = queues_[member];
      return other.next < other.activities.size() && other.keys[other.next] == key &&
             other.activities[other.next].place <= max_place;
    });
  }

  void add_group(const std::vector<std::size_t>& members) {
    std::set<InstructionId> awaited;
    for (const std::size_t member : members) {
      const ActivityQueue& queue = queues_[member];
      if (queue.last != kNoInstruction) awaited.insert(queue.last);
      const PlacedActivity& one = queue.activities[queue.next];
      if (one.place != ActivityPlace::kBefore && one.op != kNoInstruction)
        awaited.insert(first_of_replica_[member / ranks_] + one.op);
    }
    const Nanos begin = find_latest_start(members);
    for (const std::size_t member : members) {
      ActivityQueue& queue = queues_[member];
      const PlacedActivity& one = queue.activities[queue.next++];
      queue.last = job_.program.size();
      if (one.place == ActivityPlace::kBefore && one.op != kNoInstruction)
        gates_[{member / ranks_, one.op}].push_back(queue.last);
      add_activity(*one.activity, {awaited.begin(), awaited.end()}, begin);
    }
  }

  /// The time at which the last of the workers begins the activity that is next in their queues.
  Nanos find_latest_start(const std::vector<std::size_t>& members) const {
    Nanos latest = std::numeric_limits<Nanos>::min();
    for (const std::size_t member : members) {
      const ActivityQueue& queue = queues_[member];
      latest = std::max(latest, queue.activities[queue.next].activity->start);
    }
    return latest;
  }

  /// A trace may record a collective from the moment its worker enters it; only the time after
  /// `begin`, when the last worker has entered, is its own.
  void add_activity(const OuterActivity& activity, const std::vector<InstructionId>& awaited,
                    Nanos begin) {
    const auto name =
        std::lower_bound(names_.begin(), names_.end(), activity.name) - names_.begin();
    Instruction instruction;
    instruction.op.kind = OpKind::kIdle;
    instruction.lane = kNoLane;
    instruction.rank = instruction.peer = activity.rank;
    add(instruction, awaited, std::max<Nanos>(0, activity.end - std::max(begin, activity.start)),
        {activity.replica, activity.rank, static_cast<std::uint32_t>(kOpKinds + name)});
  }

  /// Lets the first ops of a replica wait, after the activities before them, as long as it began
  /// late; empty where it did not.
  std::optional<InstructionId> add_delay(std::size_t replica) {
    if (step_[replica].delay == 0) return {};
    std::vector<InstructionId> before;
    const Program& program = step_[replica].program;
    for (InstructionId id = 0; id < program.size(); ++id)
      if (const auto gate = gates_.find({replica, id});
          gate != gates_.end() && program.dependencies_of(id).empty())
        before.insert(before.end(), gate->second.begin(), gate->second.end());
    Instruction waiting;
    waiting.op.kind = OpKind::kIdle;
    waiting.lane = kNoLane;
    add(waiting, before, step_[replica].delay, {0, 0, kNoKind});
    return job_.program.size() - 1;
  }

  void add_pipelines() {
    for (std::size_t at = 0; at < step_.size(); ++at) {
      const Program& program = step_[at].program;
      const std::vector<bool> waits = find_waiting_messages(step_[at]);
      const std::optional<InstructionId> delay = add_delay(at);
      const InstructionId first = job_.program.size();
      const auto lanes = static_cast<std::uint32_t>(job_.program.lanes.size());
      first_of_replica_.push_back(first);
      job_.program.lanes.insert(job_.program.lanes.end(), program.lanes.begin(),
                                program.lanes.end());
      for (InstructionId id = 0; id < program.size(); ++id) {
        Instruction one = program.instructions[id];
        if (one.lane != kNoLane) one.lane += lanes;
        std::vector<InstructionId> awaited;
        for (const InstructionId on : program.dependencies_of(id)) awaited.push_back(first + on);
        if (delay && awaited.empty()) awaited.push_back(*delay);
        if (const auto gate = gates_.find({at, id}); gate != gates_.end())
          awaited.insert(awaited.end(), gate->second.begin(), gate->second.end());
        add(one, awaited, step_[at].duration_of(id),
            {static_cast<std::int32_t>(at), one.rank, static_cast<std::uint32_t>(one.op.kind),
             waits[id], step_[at].is_on_side_stage(one.op), one.role != Role::kWork});
      }
    }
  }

  void add(const Instruction& instruction, const std::vector<InstructionId>& awaited,
           Nanos duration, const InstructionOwner& owner) {
    Program& program = job_.program;
    program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
    program.dependencies.insert(program.dependencies.end(), awaited.begin(), awaited.end());
    program.instructions.push_back(instruction);
    job_.durations.push_back(duration);
    job_.owners.push_back(owner);
  }

  const ReplicatedStep& step_;
  std::span<const std::string> names_;
  std::size_t ranks_;
  std::vector<ActivityQueue> queues_;  ///< [replica * ranks + rank]
  std::map<GroupKey, std::vector<std::size_t>> members_;
  std::vector<InstructionId> first_of_replica_;
  /// [replica, op]: the activities before the first op of a stage
  std::map<std::pair<std::size_t, InstructionId>, std::vector<InstructionId>> gates_;
  JobProgram job_;
};

/// Gives messages that waited for their receiver their own time.
void drop_waiting(std::vector<JobProgram>& programs) {
  std::array<std::vector<Nanos>, kOpKinds> times;
  for (const JobProgram& one : programs)
    for (InstructionId id = 0; id < one.program.size(); ++id)
      if (one.owners[id].kind < kOpKinds && !one.owners[id].waits_for_receiver &&
          !one.owners[id].is_end)
        times[one.owners[id].kind].push_back(one.durations[id]);
  std::array<Nanos, kOpKinds> usual{};
  for (std::size_t kind = 0; kind < times.size(); ++kind)
    if (!times[kind].empty()) usual[kind] = quantile(std::move(times[kind]), 50);
  for (JobProgram& one : programs)
    for (InstructionId id = 0; id < one.program.size(); ++id)
      if (one.owners[id].waits_for_receiver)
        one.durations[id] = std::min(one.durations[id], usual[one.owners[id].kind]);
}

}  // namespace

std::vector<std::string> collect_names(std::span<const std::vector<OuterActivity>> activities) {
  std::set<std::string> names;
  for (const std::vector<OuterActivity>& of_step : activities)
    for (const OuterActivity& activity : of_step) names.insert(activity.name);
  return {names.begin(), names.end()};
}

std::optional<JobProgram> make_job_program(const ReplicatedStep& step,
                                           std::span<const OuterActivity> activities,
                                           std::span<const std::string> names) {
  return JobBuilder(step, names).build(activities);
}

std::vector<JobProgram> make_job_programs(std::span<const ReplicatedStep> steps,
                                          std::span<const std::vector<OuterActivity>> activities,
                                          std::span<const std::string> names) {
  std::vector<JobProgram> programs;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    std::optional<JobProgram> made = make_job_program(
        steps[at], activities.empty() ? std::span<const OuterActivity>{} : activities[at], names);
    if (!made) return make_job_programs(steps, {}, {});
    programs.push_back(*std::move(made));
  }
  drop_waiting(programs);
  return programs;
}

}  // namespace bubblescope::inline sim
