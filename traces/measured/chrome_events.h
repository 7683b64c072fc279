// Reads from a Chrome trace, event by event, the slices that could be ops of a pipeline. Files of
// gigabytes hold mostly kernels and calls; of these only the number is kept.
//
//   [{"ph":"X","name":"forward-compute","pid":0,"tid":15,"ts":848671.674,"dur":138679.683,
//     "args":{"step":23,"model_chunk":0,"mb_id":1}}, ...]         or {"traceEvents":[...], ...}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/units.h"
#include "traces/measured/chrome_slice.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/other_slices.h"
#include "traces/measured/profiled_event.h"
#include "traces/measured/running_numbers.h"
#include "traces/measured/seen_names.h"

namespace bubblescope::traces {

struct ChromeThread {
  std::string process;  ///< the pid, a number or a text
  std::string id;       ///< the tid
  std::string name;     ///< from the metadata; empty where there is none
};

/// Facts that the metadata of a process states.
struct ChromeProcess {
  std::string name;
  std::optional<std::int64_t> sort_index;  ///< its place in a viewer
};

/// Whether slices of this category are named by the program that was traced, not by libraries.
bool is_named_by_user(std::string_view category);

/// A process group of torch.distributed.
struct ProcessGroup {
  std::string description;  ///< "mesh_pp", "PIPELINE_MODEL_PARALLEL_GROUP"
  std::vector<std::int64_t> ranks;
};

struct ChromeEvents {
  RunningNumbers numbers;
  std::map<std::string, RunningNumbers> numbers_by_process;
  std::set<std::string> profiled_processes;  ///< with steps or ops of PyTorch's profiler
  std::vector<ChromeThread> threads;
  std::map<std::string, ChromeProcess> processes;  ///< by pid: those with metadata
  std::vector<ProfiledEvent> profiled;
  std::vector<ProcessGroup> groups;  ///< of PyTorch's distributedInfo
  /// The peers of all sends and receives: their places in a group, by its ranks as text ("[0, 1]").
  std::map<std::string, std::set<std::int64_t>> peers;
  std::optional<std::int64_t> world_size;
  std::string host;  ///< host_name of PyTorch's profiler
  std::vector<ChromeSlice> slices;
  std::vector<ChromeSlice> parts;  ///< annotations such as attn(F)
  OtherSlices other_slices;        ///< all others but those of PyTorch's profiler and ignored ones
  std::map<std::string, std::string> other_data;  ///< the scalars of "otherData"
  bool is_kineto = false;                         ///< written by PyTorch's profiler
  bool has_list = false;                          ///< of events, which may be empty
  std::string schema;                             ///< of PyTorch's ExecutionTraceObserver
  std::optional<std::int64_t> distributed_rank;   ///< of PyTorch's distributedInfo
  std::map<std::string, std::int64_t> left_out;   ///< category -> number of slices that are not ops
  SeenNames names;                                ///< of annotations that are not ops
  std::int64_t negative_durations = 0;  ///< slices with a negative duration, which count as empty
  std::map<std::string, std::int64_t> negative_by_process;
};

/// Returns the note on slices whose end is unknown (their duration is negative).
std::string describe_negative_durations(std::int64_t slices);

/// Whether the first bytes of a text look like a Chrome trace.
bool is_chrome_trace(std::string_view text);

/// Keeps the slices whose names are those of ops, and those with args.op. Throws Error with
/// line and column for invalid json, and names an event with a bad time.
ChromeEvents read_chrome_events(std::string_view text, const std::string& file, NameMatcher& names);

/// Parses microseconds as json writes them ("1204.5"), rounded to the nearest nanosecond; nullopt
/// where the text is not a number or does not fit.
std::optional<Nanos> parse_micros(std::string_view text);

/// Says that a json has no list of events, and what it is instead; empty where it has one.
std::string describe_missing_list(const ChromeEvents& events);

/// Lists what a trace has instead of ops: "12 kernel, 3 slices without category".
std::string describe_left_out(const ChromeEvents& events);

}  // namespace bubblescope::traces
