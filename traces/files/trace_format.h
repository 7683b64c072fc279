// Reads measured traces, of this program or of others; one file per format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/registry.h"
#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "traces/files/device_place.h"
#include "traces/files/observed_activity.h"
#include "traces/files/recorder.h"
#include "traces/files/step_facts.h"
#include "traces/files/trace_source.h"

namespace bubblescope::traces {

/// One whole step of one pipeline: the input of `analyze`.
struct MeasuredStep {
  std::string label;  ///< "replica 0 step 23"; empty where a file holds one step only
  ValidSchedule schedule;
  Program program = {};
  Timeline timeline = {};
  std::int32_t replica = 0;         ///< which of several equal pipelines (data parallelism)
  std::int64_t number = 0;          ///< of the step, as the trace numbers it
  bool may_mix_steps = false;       ///< nothing states which ops are its, and other steps lack some
  std::optional<Nanos> begin = {};  ///< of its first op, by the clock of all steps; empty: unknown
  StepFacts facts = {};             ///< where a file of ours has them
  std::vector<std::int32_t> missing_ranks = {};  ///< without a trace: their ops are stand-ins
};

/// One op or message as a trace records it.
struct ObservedOp {
  Op op;
  std::int32_t recorder = 0;  ///< index into ObservedTrace::recorders
  std::int32_t replica = 0;   ///< which of several equal pipelines (data parallelism)
  std::int64_t step = 0;
  std::optional<std::int64_t> mark = {};  ///< the step that a range around it states
  bool step_is_counted = false;           ///< no name, argument or range states `step`
  bool has_step = true;  ///< false: the step follows from the order, as op.microbatch counts on
  std::optional<std::int32_t> chunk;  ///< where the trace gives this instead of op.stage
  bool chunk_is_assumed = false;      ///< it is 0, although the rank may run several
  bool numbered = true;               ///< false: op.microbatch follows from the order in the step
  bool may_hold_waiting = false;      ///< it is a host range, which may first wait for its input
  bool start_is_observed = false;  ///< such a range, but its content shows where the waiting ended
  bool is_arrival = false;         ///< a message with the number of the op whose input it brought
  bool is_inferred = false;        ///< such a message, which the rank may as well have sent
  std::optional<Nanos> waited_from = {};   ///< a message: when its rank's host came to wait for it
  std::optional<DevicePlace> device = {};  ///< where the kernels of a device were observed
  Nanos start = 0;
  Nanos end = 0;
};

/// Time of a rank that no op and no message stands for, which a replay would miss.
struct LostTime {
  double share = 0;  ///< of the rank's steps
  std::string text;  ///< a whole sentence
};

/// Whole sentences about a trace or its steps.
struct Remarks {
  std::vector<std::string> left_out;  ///< files and steps that are in no report
  std::vector<std::string> notes;     ///< what else was left out or corrected
  std::vector<std::string> doubts;    ///< the same where it makes the report less certain
  std::vector<std::string> faults;    ///< the same where its times support no conclusion
  std::vector<LostTime> lost = {};    ///< the same where a replay misses the measured span
};

/// The content of one or several files: whole steps, or single ops for assemble_steps().
struct ObservedTrace {
  TraceSource source;  ///< of ops; of whole steps, each Timeline has its own
  std::vector<MeasuredStep> steps;
  std::vector<Recorder> recorders;
  std::vector<ObservedOp> ops;
  std::vector<ObservedActivity> activities;
  Remarks remarks;
};

/// Returns the recorder of an op or an activity.
template <class Observed>
const Recorder& recorder_of(const ObservedTrace& trace, const Observed& observed) {
  return trace.recorders[static_cast<std::size_t>(observed.recorder)];
}

class NameRules;

/// An input file: its whole text, or of a database only the first bytes.
struct TraceInput {
  std::string path;
  std::string_view text;
  const NameRules* rules = nullptr;  ///< what names mean besides their usual meaning; may be null
};

/// A format that `analyze` reads. The first that recognizes a file reads it.
struct TraceFormat {
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;
  std::function<bool(std::string_view first_bytes)> recognize;
  /// Throws Error with the place of the first fault, or with what the file has instead of ops.
  std::function<ObservedTrace(const TraceInput& input)> read;
};

/// Reads one file; "-" is stdin, gzip is unpacked. `rules` may be null. Throws Error.
ObservedTrace read_trace(const std::string& path, const NameRules* rules = nullptr);

/// Reads a text that is already in memory, likewise.
ObservedTrace parse_trace(const TraceInput& input);

/// Appends the content of a further file: other ranks of the same pipeline, or another pipeline
/// where a rank repeats that is stated as such. Throws Error where its ops are present already.
void append(ObservedTrace& trace, ObservedTrace further);

}  // namespace bubblescope::traces
