// Writing what devices did.
#include "tools/activity_file.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "exec/runtime/backend.h"
#include "sim/ir/error.h"
#include "tools/exports.h"
#include "traces/csv_string.h"
#include "traces/json_string.h"

namespace bubblescope {

namespace {

bool is_csv(const std::string& path) { return path.ends_with(".csv"); }

bool is_trace(const std::string& path) {
  return path.ends_with(".json") || path.ends_with(".json.gz");
}

const char* kind_name(const DeviceActivity& activity) {
  if (activity.kind == kBubblescopeCopy) return "copy";
  return activity.kind == kBubblescopeClear ? "clear" : "kernel";
}

std::string write_csv(const StepActivity& activity, const Step& step) {
  std::map<InstructionId, Nanos> covered;
  for (const OpActivity& op : activity.ops) covered[op.id] = op.covered;
  std::string text =
      "rank,op,kind,name,device,stream,start_ns,end_ns,bytes,op_start_ns,op_end_ns,"
      "op_covered_ns\n";
  for (const DeviceActivity& one : activity.activities) {
    const Instruction& instruction = step.program.instructions[one.id];
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", instruction.rank,
                        to_string(instruction.op), kind_name(one), csv_field(one.name), one.device,
                        one.stream, one.start, one.end, one.bytes, step.timeline.start[one.id],
                        step.timeline.end[one.id], covered[one.id]);
  }
  return text;
}

/// Microseconds, as Chrome's traces have them.
std::string micros(Nanos nanos) { return fmt::format("{:.3f}", static_cast<double>(nanos) / 1e3); }

struct ActivitySlice {
  std::int32_t rank = 0;
  std::uint32_t stream = 0;
  std::string name;
  const char* category = "";
  Nanos start = 0;
  Nanos end = 0;
};

std::string to_json(const ActivitySlice& slice, const std::string& arguments) {
  return fmt::format(
      ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{},\"cat\":\"{}\","
      "\"args\":{{{}}}}}",
      slice.rank, slice.stream, micros(slice.start), micros(slice.end - slice.start),
      json_string(slice.name), slice.category, arguments);
}

std::string write_names(const StepActivity& activity, const Step& step) {
  std::set<std::pair<std::int32_t, std::uint32_t>> rows;
  for (const DeviceActivity& one : activity.activities)
    rows.emplace(step.program.instructions[one.id].rank, one.stream);
  std::string text;
  for (std::int32_t rank = 0; rank < step.program.ranks; ++rank)
    text += fmt::format(
        "{}{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"rank {}\"}}}}",
        rank == 0 ? "\n" : ",\n", rank, rank);
  for (const auto& [rank, stream] : rows)
    text += fmt::format(
        ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":"
        "\"stream {}\"}}}}",
        rank, stream, stream);
  return text;
}

/// Ops come first: what begins with them then lies within them.
std::string write_trace(const StepActivity& activity, const Step& step) {
  std::map<InstructionId, std::uint32_t> stream_of;
  for (const DeviceActivity& one : activity.activities) stream_of.emplace(one.id, one.stream);
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[" + write_names(activity, step);
  for (const OpActivity& op : activity.ops) {
    const Instruction& instruction = step.program.instructions[op.id];
    const Nanos start = step.timeline.start[op.id];
    text += to_json({instruction.rank, stream_of[op.id], to_string(instruction.op), "op", start,
                     start + op.between_events},
                    fmt::format("\"launches\":{},\"covered_ns\":{}", op.launches, op.covered));
  }
  for (const DeviceActivity& one : activity.activities) {
    const Instruction& instruction = step.program.instructions[one.id];
    text += to_json({instruction.rank, one.stream, one.name, kind_name(one), one.start, one.end},
                    fmt::format("\"launched_by\":{},\"device\":{},\"bytes\":{}",
                                json_string(to_string(instruction.op)), one.device, one.bytes));
  }
  return text + "\n]}\n";
}

}  // namespace

void expect_activity(const std::string& path, const std::string& backend) {
  if (!is_csv(path) && !is_trace(path))
    throw Error("--activity " + path + ": write .csv, or .json for a Chrome trace");
  expect_folder(path);
  if (!find_backend(backend).start)
    throw Error("--activity: the backend " + backend + " has no device; use --backend cuda");
}

std::string write_activity(const StepActivity& activity, const Step& step,
                           const std::string& path) {
  return is_csv(path) ? write_csv(activity, step) : write_trace(activity, step);
}

}  // namespace bubblescope
