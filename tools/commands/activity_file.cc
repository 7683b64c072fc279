// Writes the activity of devices.
#include "tools/commands/activity_file.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "sim/ir/error.h"
#include "tools/commands/exports.h"
#include "traces/files/csv_string.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

namespace {

bool is_csv(const std::string& path) { return path.ends_with(".csv"); }

bool is_trace(const std::string& path) {
  return path.ends_with(".json") || path.ends_with(".json.gz");
}

const char* kind_name(const exec::DeviceActivity& activity) {
  if (activity.kind == kBubblescopeCopy) return "copy";
  return activity.kind == kBubblescopeClear ? "clear" : "kernel";
}

std::string write_csv(const exec::StepActivity& activity, const TimedStep& step) {
  std::map<InstructionId, Nanos> covered;
  for (const exec::OpActivity& op : activity.ops) covered[op.id] = op.covered;
  std::string text =
      "rank,op,kind,name,device,stream,start_ns,end_ns,bytes,op_start_ns,op_end_ns,"
      "op_covered_ns\n";
  for (const exec::DeviceActivity& one : activity.activities) {
    const Instruction& instruction = step.program.instructions[one.id];
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", instruction.rank,
                        to_string(instruction.op), kind_name(one), traces::csv_field(one.name),
                        one.device, one.stream, one.start, one.end, one.bytes,
                        step.timeline.start[one.id], step.timeline.end[one.id], covered[one.id]);
  }
  return text;
}

/// Formats microseconds as in Chrome's traces.
std::string micros(Nanos nanos) { return fmt::format("{:.3f}", static_cast<double>(nanos) / 1e3); }

struct ActivitySlice {
  std::int32_t rank = 0;
  std::uint32_t stream = 0;
  std::string name;
  const char* category = "";
  Nanos start = 0;
  Nanos end = 0;
};

/// Begins the event of a slice; its "args" are open.
void begin_slice(traces::JsonWriter& json, const ActivitySlice& slice) {
  json.line(0).begin_object().member("ph", "X").member("pid", slice.rank);
  json.member("tid", slice.stream).key("ts").raw(micros(slice.start));
  json.key("dur").raw(micros(slice.end - slice.start)).member("name", slice.name);
  json.member("cat", slice.category).key("args").begin_object();
}

void end_slice(traces::JsonWriter& json) { json.end_object().end_object(); }

/// The event that names a process or a thread.
void write_name(traces::JsonWriter& json, std::int32_t rank, std::optional<std::uint32_t> stream) {
  json.line(0).begin_object().member("ph", "M").member("pid", rank);
  if (stream) json.member("tid", *stream);
  json.member("name", stream ? "thread_name" : "process_name").key("args").begin_object();
  json.member("name", stream ? fmt::format("stream {}", *stream) : fmt::format("rank {}", rank));
  json.end_object().end_object();
}

void write_names(traces::JsonWriter& json, const exec::StepActivity& activity,
                 const TimedStep& step) {
  std::set<std::pair<std::int32_t, std::uint32_t>> rows;
  for (const exec::DeviceActivity& one : activity.activities)
    rows.emplace(step.program.instructions[one.id].rank, one.stream);
  for (std::int32_t rank = 0; rank < step.program.ranks; ++rank) write_name(json, rank, {});
  for (const auto& [rank, stream] : rows) write_name(json, rank, stream);
}

/// Ops come first, so that anything that begins with them lies within them.
std::string write_trace(const exec::StepActivity& activity, const TimedStep& step) {
  std::map<InstructionId, std::uint32_t> stream_of;
  for (const exec::DeviceActivity& one : activity.activities) stream_of.emplace(one.id, one.stream);
  std::string text;
  traces::JsonWriter json(text);
  json.begin_object().member("displayTimeUnit", "ns").key("traceEvents").begin_array();
  write_names(json, activity, step);
  for (const exec::OpActivity& op : activity.ops) {
    const Instruction& instruction = step.program.instructions[op.id];
    const Nanos start = step.timeline.start[op.id];
    begin_slice(json, {instruction.rank, stream_of[op.id], to_string(instruction.op), "op", start,
                       start + op.between_events});
    json.member("launches", op.launches).member("covered_ns", op.covered);
    end_slice(json);
  }
  for (const exec::DeviceActivity& one : activity.activities) {
    const Instruction& instruction = step.program.instructions[one.id];
    begin_slice(json, {instruction.rank, one.stream, one.name, kind_name(one), one.start, one.end});
    json.member("launched_by", to_string(instruction.op)).member("device", one.device);
    json.member("bytes", one.bytes);
    end_slice(json);
  }
  json.line(0).end_array().end_object();
  return text + '\n';
}

}  // namespace

void expect_activity(const std::string& path, const std::string& backend) {
  if (!is_csv(path) && !is_trace(path))
    throw Error("--activity " + path + ": write .csv, or .json for a Chrome trace");
  expect_folder(path);
  if (exec::find_device_backend(backend) == nullptr)
    throw Error("--activity: the backend " + backend + " has no device; use --backend cuda");
}

std::string write_activity(const exec::StepActivity& activity, const TimedStep& step,
                           const std::string& path) {
  return is_csv(path) ? write_csv(activity, step) : write_trace(activity, step);
}

}  // namespace bubblescope::tools
