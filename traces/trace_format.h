// Traces that come in: what was measured, by this program or by others, one file per format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/registry.h"
#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// One step of one pipeline, whole: what `analyze` works on.
struct MeasuredStep {
  std::string label;  ///< "dp 0 step 23"; empty where a file holds one step only
  ValidSchedule schedule;
  Program program = {};
  Timeline timeline = {};
  std::int32_t replica = 0;  ///< which of several equal pipelines (data parallelism)
  std::int64_t number = 0;   ///< of the step, as the trace counts
};

/// Who recorded ops: one rank of a pipeline.
struct Recorder {
  std::string where;                 ///< for messages: "rank1.json"
  std::optional<std::int32_t> rank;  ///< its place in the pipeline, where the file says it
  std::string host = {};             ///< the machine, whose ranks share one clock; empty: unknown
  bool knows_replica = false;        ///< its ops' `replica` is what the file says
  std::int64_t peers = 0;            ///< ranks of its pipeline, or where it does not know its
                                     ///< replica, of the job; 0: unknown
};

/// One op or message as a trace has it.
struct ObservedOp {
  Op op;
  std::int32_t recorder = 0;  ///< index into ObservedTrace::recorders
  std::int32_t replica = 0;   ///< which of several equal pipelines (data parallelism)
  std::int64_t step = 0;
  std::optional<std::int32_t> chunk;  ///< where the trace says this instead of op.stage
  bool numbered = true;               ///< false: op.microbatch follows from the order in the step
  bool may_hold_waiting = false;  ///< it is a range of the host, which may wait for its input first
  bool start_is_seen = false;     ///< such a range, but what it holds shows where the waiting ended
  Nanos start = 0;
  Nanos end = 0;
};

/// What a step has besides the pipeline's ops: a collective, the optimizer, or the mark of a whole
/// step on one rank.
struct ObservedWork {
  std::string name;
  std::int32_t recorder = 0;
  std::int32_t replica = 0;
  std::int64_t step = 0;
  bool is_whole_step = false;
  Nanos start = 0;
  Nanos end = 0;
};

/// One step as its users wait for it: on the slowest replica, with all that runs before and after
/// the pipeline's ops.
struct WholeStep {
  std::int64_t step = 0;
  Nanos whole = 0;
  Nanos pipeline = 0;  ///< the makespan of the slowest replica's ops
  /// What runs while no op of the replica does, by name: the longest time on any rank.
  std::vector<std::pair<std::string, Nanos>> outside;
};

/// What one or several files hold: whole steps, or single ops that measured_steps() puts together.
struct ObservedTrace {
  std::string source;  ///< "kineto", "nsys", "chrome"; of whole steps, each Timeline has its own
  std::vector<MeasuredStep> steps;
  std::vector<Recorder> recorders;
  std::vector<ObservedOp> ops;
  std::vector<ObservedWork> works;
  std::vector<WholeStep> whole_steps;  ///< filled in by measured_steps() from the works
  std::vector<std::string> notes;      ///< what was left out or corrected, in sentences
  std::vector<std::string> doubts;     ///< the same where it makes the report less than sure
  std::vector<std::string> faults;     ///< what makes its times no basis for any conclusion
};

/// A file as it is read: the text of a whole file, or of a database its first bytes only.
struct TraceInput {
  std::string path;
  std::string_view text;
};

/// A format that `analyze` reads. The first that recognizes a file reads it.
struct TraceFormat {
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;
  std::function<bool(std::string_view first_bytes)> recognize;
  /// Throws Error with the place of the first fault, or with what the file has instead of a
  /// pipeline's ops.
  std::function<ObservedTrace(const TraceInput& input)> read;
};

/// Reads one file; "-" is stdin, .gz is unpacked. Throws Error.
ObservedTrace read_trace(const std::string& path);

/// The same of a text that is already there.
ObservedTrace parse_trace(const TraceInput& input);

/// Appends the content of a further file: other ranks of the same pipeline, or, where it has a rank
/// that is there already, another pipeline. Throws Error where its ops are there already.
void append(ObservedTrace& trace, ObservedTrace further);

}  // namespace bubblescope
