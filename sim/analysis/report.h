// The BubbleReport: what a schedule costs and where its bubbles come from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// Why a rank was idle. Over the causes, idle time adds up exactly.
enum class IdleCause : std::uint8_t {
  kWarmup,         ///< before the rank's first op: the pipeline fills
  kImbalance,      ///< waiting that no order removes: the busiest rank has that much more work
  kDependency,     ///< waiting for an op of another rank
  kCommunication,  ///< waiting while the awaited message is on its way
  kMemory,         ///< waiting for memory to be free, or for activations to be back
  kDrain,          ///< after the rank's last op: the pipeline empties
  kSync,           ///< waiting for a collective or the optimizer's barrier
};
inline constexpr int kIdleCauses = 7;

std::string_view name(IdleCause cause);

/// What a rank was busy with. "send" is time that messages occupy the rank itself.
enum class BusyKind : std::uint8_t { kF, kI, kW, kB, kR, kSend, kOptimizer };
inline constexpr int kBusyKinds = 7;

std::string_view name(BusyKind kind);

/// The highest point of a rank's memory, and the op that reaches it.
struct Peak {
  double chunks = 0;       ///< stage chunks whose activations are held
  double activations = 0;  ///< the same in micro-batches of the rank's whole share
  double units = 0;        ///< in the unit of --mem
  std::optional<Bytes> bytes;
  std::optional<InstructionId> at;  ///< the instruction at which `chunks` is first reached
};

/// What asynchronous training costs a rank in weights.
struct WeightReport {
  std::int32_t warmup = 0;     ///< forwards before the first pair of a forward and a backward
  std::int32_t staleness = 0;  ///< most updates between reading weights and applying the gradient
  std::int32_t versions = 0;   ///< most copies of the weights that are held at once
  std::optional<Bytes> bytes;  ///< of all these copies, where the cost file gives a stage's
};

struct RankReport {
  Nanos busy = 0;
  Nanos idle = 0;  ///< busy + idle = makespan, on every rank
  Nanos first_start = 0;
  Nanos last_end = 0;
  std::int64_t sends = 0;
  Peak peak;
  std::optional<WeightReport> weights;  ///< where training is asynchronous
  std::array<Nanos, kBusyKinds> busy_by_kind{};
  std::array<Nanos, kIdleCauses> idle_by_cause{};
};

/// The bubble under each of its published names; docs/bubble.md defines them.
struct Bubble {
  double ratio = 0;      ///< 1 - sum(busy) / (ranks * makespan)
  double overhead = 0;   ///< (makespan - ideal) / ideal
  double span_rate = 0;  ///< (max_span - ideal) / max_span: the zero-bubble papers' rate
  Nanos time = 0;        ///< makespan - ideal
};

/// What passed a link, or one direction of a device, that messages share.
struct LinkUse {
  std::string name;
  Bytes bytes = 0;
  Nanos busy = 0;          ///< time with anything on it
  Nanos shared = 0;        ///< time with two messages or more on it
  double utilization = 0;  ///< bytes, of what it could have carried in the whole step
};

/// How long a step takes when no two are alike.
struct StepTimes {
  std::vector<Nanos> makespans;  ///< per scenario
  Nanos p50 = 0;                 ///< half of the scenarios take no longer
  Nanos p95 = 0;
  Nanos least = 0;
  Nanos most = 0;
  double mean = 0;  ///< in nanoseconds
};

/// By how much the step gets longer when something takes 1 % longer.
struct Sensitivity {
  std::vector<Nanos> by_rank;               ///< all compute ops of the rank
  std::array<Nanos, kBusyKinds> by_kind{};  ///< all ops of the kind; "send": all messages
};

struct BubbleReport {
  std::string source;  ///< of the Timeline
  std::string schedule;
  Shape shape;
  Nanos makespan = 0;  ///< first start anywhere to last end anywhere
  Nanos max_span = 0;  ///< largest, over ranks, of own last end minus own first start
  Nanos ideal = 0;     ///< busy time of the busiest rank
  Bubble bubble;
  /// Without flushes: time per micro-batch once the pipeline runs evenly. Empty for schedules with
  /// flushes, and where there are too few micro-batches to tell.
  std::optional<Nanos> period;
  std::vector<RankReport> ranks;
  MemoryModel memory;                        ///< by which the peaks were counted
  std::vector<InstructionId> critical_path;  ///< in time order
  std::vector<Nanos> slack;        ///< per instruction: how much later it could end for free
  std::vector<LinkUse> links;      ///< busiest first; empty without a cluster
  std::optional<StepTimes> noise;  ///< where there is any
  std::optional<Sensitivity> sensitivity;  ///< where it was asked for
  Nanos lower_bound = 0;                   ///< no order of these ops on these ranks is faster
};

}  // namespace bubblescope
