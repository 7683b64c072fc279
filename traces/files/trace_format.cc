// Finds the format of a trace.
#include "traces/files/trace_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "sim/ir/error.h"
#include "traces/files/file.h"
#include "traces/files/format.h"
#include "traces/files/is_schedule.h"
#include "traces/files/no_pipeline.h"

namespace bubblescope::traces {

namespace {

/// Databases are opened in place: they can be larger than memory.
constexpr std::string_view kDatabase{"SQLite format 3\0", 16};

std::string first_bytes(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};  // a pipe can be read only once
  std::array<char, kDatabase.size()> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(file.gcount())};
}

/// The ranks of a trace that are no numbers of processes; tensor-parallel ranks are others.
using KnownRanks = std::set<std::pair<std::int32_t, std::optional<std::int32_t>>>;

KnownRanks known_ranks(const ObservedTrace& trace) {
  KnownRanks ranks;
  for (const Recorder& recorder : trace.recorders)
    // Every file may count its processes for itself.
    if (recorder.rank && !recorder.is_process) ranks.emplace(*recorder.rank, recorder.tensor);
  return ranks;
}

/// In how many pipelines some of these ranks ran: the n-th file of a rank is of the n-th pipeline.
std::int32_t count_pipelines_of(const KnownRanks& ranks, const ObservedTrace& trace) {
  const auto is_one = [&](const Recorder& recorder) {
    return recorder.rank && !recorder.is_process &&
           ranks.contains({*recorder.rank, recorder.tensor});
  };
  std::vector<bool> are_of_ranks;
  for (const Recorder& recorder : trace.recorders) are_of_ranks.push_back(is_one(recorder));
  std::int32_t count = 0;
  for (const ObservedOp& observed : trace.ops)
    if (are_of_ranks[static_cast<std::size_t>(observed.recorder)])
      count = std::max(count, observed.replica + 1);
  return count;
}

/// Two measurements of one rank never agree to the nanosecond, so equal times mean a repeated file.
/// Ranks that state other places may agree, as tensor-parallel ones of a simulated job do.
void refuse_repeated(const ObservedTrace& trace, const ObservedTrace& further) {
  const auto may_be_one_rank = [&](const ObservedOp& left, const ObservedOp& right) {
    const Recorder& one = recorder_of(trace, left);
    const Recorder& other = recorder_of(further, right);
    if (one.tensor && other.tensor && one.tensor != other.tensor) return false;
    const bool state_replicas = one.has_replica && other.has_replica && !one.is_by_job_rank;
    return !state_replicas || left.replica == right.replica;
  };
  const auto same = [&](const ObservedOp& left, const ObservedOp& right) {
    return left.op == right.op && left.start == right.start && left.end == right.end &&
           may_be_one_rank(left, right);
  };
  if (further.ops.empty()) return;
  const auto found =
      std::search(trace.ops.begin(), trace.ops.end(), further.ops.begin(), further.ops.end(), same);
  if (found == trace.ops.end()) return;
  throw Error(
      fmt::format("{} has the ops that are in {} already, at the same times; give every trace once",
                  further.recorders.front().where, recorder_of(trace, *found).where));
}

/// When the first op of a recorder starts, and its last one ends.
std::pair<Nanos, Nanos> find_extent(const ObservedTrace& trace, std::int32_t recorder) {
  std::pair extent{std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()};
  for (const ObservedOp& observed : trace.ops) {
    if (observed.recorder != recorder) continue;
    extent.first = std::min(extent.first, observed.start);
    extent.second = std::max(extent.second, observed.end);
  }
  return extent;
}

bool are_apart(const std::pair<Nanos, Nanos>& left, const std::pair<Nanos, Nanos>& right) {
  return left.second <= right.first || right.second <= left.first;
}

/// The recorder of which `further` is another recording: the same process at another time. A rank
/// of one job runs in one process, so Error is thrown where it was another one.
std::optional<std::int32_t> find_same_process(const ObservedTrace& trace,
                                              const ObservedTrace& further) {
  if (further.ops.empty() || further.recorders.size() != 1) return {};
  const Recorder& later = further.recorders.front();
  const auto replica_of = [](const ObservedTrace& of, std::int32_t recorder) {
    const auto op = std::find_if(of.ops.begin(), of.ops.end(), [&](const ObservedOp& observed) {
      return observed.recorder == recorder;
    });
    return op == of.ops.end() ? 0 : op->replica;
  };
  for (std::int32_t at = 0; at < std::ssize(trace.recorders); ++at) {
    const Recorder& known = trace.recorders[at];
    if (known.rank != later.rank || replica_of(trace, at) != replica_of(further, 0)) continue;
    const bool is_same_host = known.host == later.host;
    const bool is_known = is_same_host ? !known.process.empty() && !later.process.empty()
                                       : known.rank && !known.host.empty() && !later.host.empty();
    if (!is_known) continue;
    if (is_same_host && known.process == later.process) return at;
    if (are_apart(find_extent(trace, at), find_extent(further, 0)))
      throw Error(fmt::format(
          "{} and {} record the same rank at different times, {}: they are two "
          "runs of a job; give the traces of one run",
          known.where, later.where,
          is_same_host ? fmt::format("in processes {} and {}", known.process, later.process)
                       : fmt::format("on hosts {} and {}", known.host, later.host)));
  }
  return {};
}

/// Adds a recording of a process that has one already. Throws Error if both count steps alike.
void append_recording(ObservedTrace& trace, ObservedTrace& further, std::int32_t recorder) {
  std::set<std::int64_t> steps;
  for (const ObservedOp& observed : trace.ops)
    if (observed.recorder == recorder) steps.insert(observed.step);
  for (ObservedOp& observed : further.ops) {
    if (steps.contains(observed.step))
      throw Error(fmt::format(
          "{} and {} were recorded by one process, and both have a step {}; give only one "
          "recording of each rank",
          trace.recorders[recorder].where, further.recorders.front().where, observed.step));
    observed.recorder = recorder;
  }
  for (ObservedActivity& activity : further.activities) activity.recorder = recorder;
}

}  // namespace

ObservedTrace parse_trace(const TraceInput& input) {
  if (input.text.empty()) throw NoPipeline(input.path + " is empty; give a recorded trace");
  std::string readable;
  for (const TraceFormat& format : Registry<TraceFormat>::instance().all()) {
    if (format.recognize(input.text)) return format.read(input);
    readable += (readable.empty() ? "" : ", ") + format.name;
  }
  constexpr char kFirstPacket = '\x0a';  // of both, which may contain zeros
  if (input.text.front() == kFirstPacket && input.text.find('\0') != input.text.npos)
    throw NoPipeline(input.path +
                     " looks like a trace of Perfetto, or of XLA's profiler (*.xplane.pb), formats "
                     "that are not read; give what `save` writes of the same step, or Chrome json");
  if (is_schedule(std::string(input.text)))
    throw NoPipeline(input.path +
                     " is a schedule and has no times; 'bubblescope simulate' predicts them");
  throw NoPipeline(
      fmt::format("{} is in no format that holds traces; those are {}", input.path, readable));
}

bool is_schedule(const std::string& text) {
  try {
    for (const ScheduleFormat& format : Registry<ScheduleFormat>::instance().all())
      if (format.recognize && format.recognize(text)) return format.read(text, "").op_count() > 0;
  } catch (const Error&) {
    return false;
  }
  return false;
}

ObservedTrace read_trace(const std::string& path, const NameRules* rules) {
  if (path != "-") {
    const std::string begin = first_bytes(path);
    if (begin == kDatabase) return parse_trace({path, begin, rules});
  }
  const std::string text = read_file(path);
  return parse_trace({name_input(path), text, rules});
}

void append(ObservedTrace& trace, ObservedTrace further) {
  refuse_repeated(trace, further);
  const auto recorders = static_cast<std::int32_t>(trace.recorders.size());
  const std::optional<std::int32_t> same = find_same_process(trace, further);
  const bool have_replicas =
      std::any_of(further.recorders.begin(), further.recorders.end(),
                  [](const Recorder& recorder) { return recorder.has_replica; });
  const std::int32_t replicas = have_replicas ? 0 : count_pipelines_of(known_ranks(further), trace);
  const auto renumber = [&](auto& observed) {
    observed.recorder += recorders;
    observed.replica += replicas;
  };
  if (same) {
    append_recording(trace, further, *same);
    further.recorders.clear();
  } else {
    std::for_each(further.ops.begin(), further.ops.end(), renumber);
    std::for_each(further.activities.begin(), further.activities.end(), renumber);
  }
  const auto move_all = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  if (trace.source.name.empty()) trace.source = further.source;
  move_all(trace.steps, further.steps);
  move_all(trace.recorders, further.recorders);
  move_all(trace.ops, further.ops);
  move_all(trace.activities, further.activities);
  std::vector<std::string>& notes = trace.remarks.notes;
  for (std::string& note : further.remarks.notes)
    if (std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(std::move(note));
  move_all(trace.remarks.left_out, further.remarks.left_out);
  move_all(trace.remarks.doubts, further.remarks.doubts);
  move_all(trace.remarks.faults, further.remarks.faults);
  move_all(trace.remarks.lost, further.remarks.lost);
}

}  // namespace bubblescope::traces
