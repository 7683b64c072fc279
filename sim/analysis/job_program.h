// The whole step of a job as one Program: the pipelines of all replicas, and what every worker (one
// rank of one replica) runs besides its ops.
//
//   gathering parameters ──► first op of the stage ... last op ──► reductions ──► optimizer
//
// A collective begins on all its workers when the last of them has come to it, and takes the time
// from then on; what a trace shows of it before is waiting. Activities that run while their worker
// computes begin when the op before them has ended, and precede the activities after the last op.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/stragglers.h"

namespace bubblescope::inline sim {

/// The data-parallel replicas of one step, which synchronize at its end. All have the same ranks.
using ReplicatedStep = std::vector<ObservedStep>;

/// The workers that begin an activity together.
enum class ActivityGroup : std::uint8_t {
  kAlone,
  kReplicas,  ///< the same rank of all replicas
  kPipeline,  ///< the ranks of one replica that run it
  kJob,
};

/// One activity of a worker besides its ops.
struct OuterActivity {
  std::string name;
  std::int32_t replica = 0;
  std::int32_t rank = 0;
  ActivityGroup group = ActivityGroup::kAlone;
  bool communicates = false;
  std::optional<std::int32_t> stage = {};  ///< whose parameters it is about; empty: the rank's
  Nanos start = 0;
  Nanos end = 0;
};

/// The kind of an instruction that no worker runs: the wait before a replica that begins late.
inline constexpr std::uint32_t kNoKind = std::numeric_limits<std::uint32_t>::max();

/// The rank and the kind of the op, activity or message that an instruction of a JobProgram is.
struct InstructionOwner {
  std::int32_t replica = 0;
  std::int32_t rank = 0;  ///< of a message, its sender
  /// An OpKind, or kOpKinds plus the index of an activity's name, or kNoKind.
  std::uint32_t kind = 0;
  bool waits_for_receiver = false;  ///< sim/analysis/waiting_messages.h
  bool is_on_side_stage = false;    ///< whether it is an op of a side stage
  bool is_end = false;              ///< a post or a wait for a message of that kind
};

struct JobProgram {
  Program program;                       ///< its lanes are those of all replicas
  std::vector<Nanos> durations;          ///< as measured
  std::vector<InstructionOwner> owners;  ///< per instruction
};

/// The names of activities in all steps, sorted.
std::vector<std::string> collect_names(std::span<const std::vector<OuterActivity>> activities);

/// Builds the Program. `activities` are those of the step, `names` includes all of theirs. Empty if
/// workers run the same collectives in different orders.
std::optional<JobProgram> make_job_program(const ReplicatedStep& step,
                                           std::span<const OuterActivity> activities,
                                           std::span<const std::string> names);

/// The Programs of all steps. `activities`: per step, what runs besides the ops; empty where that
/// is not known. Without activities if workers run the same collectives in different orders. A
/// message that waited for its receiver has its own time instead of the measured one: the median of
/// those of its kind that did not wait, but at most the measured time; 0 where all of them waited.
std::vector<JobProgram> make_job_programs(std::span<const ReplicatedStep> steps,
                                          std::span<const std::vector<OuterActivity>> activities,
                                          std::span<const std::string> names);

}  // namespace bubblescope::inline sim
