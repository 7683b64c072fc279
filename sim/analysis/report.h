// The BubbleReport: busy time by kind and idle time by cause; per rank they add up to the makespan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/job_step.h"
#include "sim/analysis/parts_report.h"
#include "sim/analysis/peak.h"
#include "sim/analysis/serving_report.h"
#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// Why a rank was idle. Idle times by cause add up exactly.
enum class IdleCause : std::uint8_t {
  kWarmup,         ///< before the rank's first op, while the pipeline fills
  kImbalance,      ///< waiting, up to the work that the rank lacks beside the busiest one
  kDependency,     ///< waiting for an op of another rank
  kCommunication,  ///< waiting while the message is in transit
  kMemory,         ///< waiting for free memory, or for activations to be loaded back
  kDrain,          ///< after the rank's last op, while the pipeline empties
  kSync,           ///< waiting for a collective or the optimizer's barrier
  kArrival,        ///< waiting for a micro-batch to arrive
  kLaunch,         ///< its next op is ready, but has not started
};
inline constexpr int kIdleCauses = 9;

std::string_view name(IdleCause cause);

/// The kinds of busy time; "send" is the time for which messages occupy the rank itself.
enum class BusyKind : std::uint8_t { kF, kI, kW, kB, kR, kSend, kOptimizer };
inline constexpr int kBusyKinds = 7;
std::string_view name(BusyKind kind);

/// Weight versions of a rank in asynchronous training.
struct WeightReport {
  std::int32_t warmup = 0;     ///< forwards before the first forward-backward pair
  std::int32_t staleness = 0;  ///< maximum updates between a read and the gradient's update
  std::int32_t versions = 0;   ///< maximum copies of the weights held at once
  std::optional<Bytes> bytes;  ///< of all these copies, if the cost file gives a stage's
  bool operator==(const WeightReport&) const = default;
};

struct RankReport {
  bool is_recorded = true;  ///< false if its trace is missing: then nothing else is known of it
  Nanos busy = 0;
  Nanos idle = 0;  ///< busy + idle = makespan, on every rank
  Nanos first_start = 0;
  Nanos last_end = 0;
  std::int64_t sends = 0;
  Peak peak;
  std::optional<WeightReport> weights;  ///< for asynchronous training
  std::array<Nanos, kBusyKinds> busy_by_kind{};
  std::array<Nanos, kIdleCauses> idle_by_cause{};
  bool operator==(const RankReport&) const = default;
};

/// The bubble by each of its published definitions; see docs/bubble.md.
struct Bubble {
  double ratio = 0;      ///< 1 - sum(busy) / (ranks * makespan)
  double overhead = 0;   ///< (makespan - ideal) / ideal
  double span_rate = 0;  ///< (max_span - ideal) / max_span: the zero-bubble papers' rate
  Nanos time = 0;        ///< makespan - ideal
  bool operator==(const Bubble&) const = default;
};

/// Traffic over a shared link, or over one direction of a shared device.
struct LinkUse {
  std::string name;
  Bytes bytes = 0;
  Nanos busy = 0;          ///< time with at least one message
  Nanos shared = 0;        ///< time with at least two messages
  double utilization = 0;  ///< bytes as a fraction of what it could have carried
};

/// The times of a step under noise.
struct StepTimes {
  std::vector<Nanos> makespans;    ///< per scenario
  Nanos p5 = 0, p50 = 0, p95 = 0;  ///< 5 %, 50 % and 95 % of the scenarios take at most this long
  Nanos shortest = 0, longest = 0;
  double mean = 0;  ///< in nanoseconds
};

/// The increase of the step time when something takes 1 % longer.
struct Sensitivity {
  std::vector<Nanos> by_rank;               ///< all compute ops of the rank
  std::array<Nanos, kBusyKinds> by_kind{};  ///< all ops of the kind; "send": all messages
};

struct BubbleReport {
  std::string source;  ///< of the Timeline
  std::string schedule;
  Shape shape;
  Nanos makespan = 0;            ///< first start anywhere to last end anywhere
  Nanos max_span = 0;            ///< largest time from a rank's first start to its own last end
  Nanos ideal = 0;               ///< busy time of the busiest rank
  std::optional<Bubble> bubble;  ///< empty without conclusions: see conclusions.h
  std::optional<Nanos> period;   ///< steady, per micro-batch; empty with flushes and for too few
  std::vector<RankReport> ranks;
  MemoryModel memory;                        ///< the model by which the peaks were counted
  std::vector<InstructionId> critical_path;  ///< in time order
  std::vector<Nanos> slack;                  ///< per instruction, see critical_path.h
  std::vector<LinkUse> links;                ///< busiest first; empty without a cluster
  std::optional<StepTimes> noise;            ///< if there is noise; of the slowest replica
  std::optional<PartsReport> parts;          ///< if ops have parts
  std::optional<JobStep> job;              ///< if costs have replicas or work outside the pipeline
  std::optional<Sensitivity> sensitivity;  ///< if requested
  std::optional<ServingReport> serving;    ///< of forward-only schedules with arrivals
  Nanos lower_bound = 0;                   ///< no order of these ops on these ranks is faster
};

}  // namespace bubblescope::inline sim
