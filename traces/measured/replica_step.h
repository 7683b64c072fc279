// Describes one replica in one step: its pipeline's ops, and what runs around them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The time before the replica's ops, and after them.
struct OuterTime {
  Nanos before = 0;
  Nanos after = 0;

  Nanos sum() const { return before + after; }
};

/// The ops of a replica in a step.
struct PipelineExtent {
  TimeSpan ops;                         ///< from the first start to the last end
  std::set<std::int32_t> waiting = {};  ///< recorders whose first op needs another rank's result
};

/// When the last rank entered a step and when the last one left it, of those seen so far. Ranks
/// that enter earlier wait for what others still do in the step before, so their marks of the step
/// are longer than it is.
using LastMarks = std::optional<TimeSpan>;

void add_mark(LastMarks& last, TimeSpan mark);

class ReplicaStep {
 public:
  ReplicaStep() = default;
  explicit ReplicaStep(PipelineExtent pipeline)
      : pipeline_(pipeline.ops), all_(pipeline.ops), waiting_(std::move(pipeline.waiting)) {}

  void add(const ObservedActivity& activity);

  /// From the first start to the last end of the ops.
  TimeSpan pipeline() const { return pipeline_; }

  /// The same, with what runs around them. Where a rank waits for its first input, all that it did
  /// before counts as done just before the pipeline begins: it waits while others still run the
  /// step before.
  TimeSpan all() const;

  /// Spans the marks of its ranks (ProfilerStep#N), if they have any.
  const LastMarks& marked() const { return marked_; }

  /// The time of the whole step. The host may leave its mark before the device has ended.
  Nanos whole() const;

  /// The longest range around the ops whose name does not speak of steps.
  const std::optional<std::pair<std::string, Nanos>>& other_range() const { return other_range_; }

  /// The time outside the ops by name, on the rank where it is longest; the longest first.
  std::vector<std::pair<std::string, Nanos>> outer_parts() const;

  bool has_collectives() const { return !in_collectives_.empty(); }

  /// The time in collectives outside the ops, on the rank where it is longest.
  Nanos time_in_collectives() const;

  /// Returns the time in collectives before the ops, on the rank where it is longest.
  Nanos time_in_collectives_before() const;

 private:
  TimeSpan pipeline_;
  TimeSpan all_;                               ///< without what waiting ranks do before
  std::set<std::int32_t> waiting_;             ///< recorders
  std::map<std::int32_t, TimeSpan> prepared_;  ///< [recorder], of these, before the pipeline
  LastMarks marked_;
  Nanos longest_range_ = 0;  ///< of those beyond which some work may lie
  std::optional<std::pair<std::string, Nanos>> other_range_;
  std::map<std::string, std::map<std::int32_t, std::vector<TimeSpan>>>
      outside_;                                       ///< [name][recorder]
  std::map<std::int32_t, OuterTime> in_collectives_;  ///< [recorder]
};

/// The pipeline's ops of each step.
using PipelineExtents = std::map<StepKey, PipelineExtent>;

/// The replicas of each step: [step][replica]. Activities of other steps and replicas are left out.
std::map<std::int64_t, std::map<std::int32_t, ReplicaStep>> group_replicas(
    const PipelineExtents& pipelines, const std::vector<ObservedActivity>& activities);

}  // namespace bubblescope::traces
