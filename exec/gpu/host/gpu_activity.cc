// Assigns activity records to instructions and sums them up.
#include "exec/gpu/host/gpu_activity.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// The number of kernels that the report names.
constexpr std::size_t kMaxNamedKernels = 3;

void expect(const char* error) {
  if (error != nullptr) throw Error(Fault::kMachine, std::string("`activity`: ") + error);
}

using Tags = std::map<std::uint32_t, std::uint64_t>;  // by correlation

Tags find_tags(const ActivityLog& log) {
  Tags tags;
  for (const ActivityRecord& record : log.records)
    if (record.raw.kind == kBubblescopeLaunchedBy) tags[record.raw.correlation] = record.raw.tag;
  return tags;
}

std::string name_of(const ActivityRecord& record) {
  if (record.raw.kind == kBubblescopeCopy) return "copy";
  if (record.raw.kind == kBubblescopeClear) return "clear";
  return kernel_name(record.name);
}

/// Selects the records of the step that have a time; they stay on the profiler's clock.
StepActivity select(const ActivityLog& log, std::int64_t step, std::size_t instructions) {
  const Tags tags = find_tags(log);
  const std::uint64_t first = activity_tag(step, 0, instructions);
  StepActivity selected;
  selected.lost = log.lost;
  for (const ActivityRecord& record : log.records) {
    const BubblescopeActivity& raw = record.raw;
    const auto tag = tags.find(raw.correlation);
    if (raw.kind == kBubblescopeLaunchedBy || tag == tags.end() || tag->second < first ||
        tag->second >= first + instructions)
      continue;
    if (raw.start == 0 || raw.end == 0) {
      ++selected.untimed;
      continue;
    }
    const auto id = static_cast<InstructionId>(tag->second - first);
    selected.activities.push_back(
        {id, raw.kind, name_of(record), raw.start, raw.end, raw.device, raw.stream, raw.bytes});
  }
  std::stable_sort(selected.activities.begin(), selected.activities.end(),
                   [](const DeviceActivity& left, const DeviceActivity& right) {
                     return std::pair(left.start, left.end) < std::pair(right.start, right.end);
                   });
  return selected;
}

/// Shifts each device's clock so that no activity begins before its instruction.
void align(std::vector<DeviceActivity>& activities, const Timeline& timeline) {
  std::map<std::int32_t, Nanos> shift;  // by device
  for (const DeviceActivity& activity : activities) {
    const Nanos ahead = activity.start - timeline.start[activity.id];
    const auto at = shift.emplace(activity.device, ahead).first;
    at->second = std::min(at->second, ahead);
  }
  for (DeviceActivity& activity : activities) {
    activity.start -= shift[activity.device];
    activity.end -= shift[activity.device];
  }
}

/// Sums up activities that are sorted by start; consecutive ones may overlap.
std::vector<OpActivity> sum_up(const std::vector<DeviceActivity>& activities,
                               const Timeline& timeline) {
  std::map<InstructionId, OpActivity> ops;
  std::map<InstructionId, Nanos> covered_until;
  for (const DeviceActivity& activity : activities) {
    const InstructionId id = activity.id;
    OpActivity& op = ops[id];
    Nanos& until = covered_until.emplace(id, activity.start).first->second;
    op.id = id;
    ++op.launches;
    op.between_events = timeline.end[id] - timeline.start[id];
    op.covered += std::max<Nanos>(0, activity.end - std::max(until, activity.start));
    until = std::max(until, activity.end);
  }
  std::vector<OpActivity> list;
  for (auto& [id, op] : ops) {
    op.covered = std::min(op.covered, op.between_events);
    list.push_back(op);
  }
  return list;
}

std::string percent(Nanos part, Nanos whole) {
  char text[32];
  const double share = whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string milliseconds(Nanos nanos) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g ms", static_cast<double>(nanos) / 1e6);
  return text;
}

}  // namespace

void start_activity(const BubblescopeGpu& calls) { expect(calls.start_activity()); }

/// An exception must not cross the module, so the callback keeps it.
ActivityLog read_activity(const BubblescopeGpu& calls) {
  struct Reading {
    ActivityLog log;
    std::exception_ptr failure;
  } reading;
  const auto take = [](void* to, const BubblescopeActivity* raw) {
    auto* const at = static_cast<Reading*>(to);
    try {
      at->log.records.push_back({*raw, raw->name != nullptr ? raw->name : ""});
    } catch (...) {
      at->failure = std::current_exception();
    }
  };
  expect(calls.read_activity(take, &reading, &reading.log.lost));
  if (reading.failure != nullptr) std::rethrow_exception(reading.failure);
  for (ActivityRecord& record : reading.log.records) record.raw.name = nullptr;
  return std::move(reading.log);
}

ActivityTag::ActivityTag(const BubblescopeGpu& calls, std::uint64_t tag) : calls_(calls) {
  expect(calls_.tag(tag));
}

ActivityTag::~ActivityTag() {
  if (!is_removed_) calls_.tag(0);
}

void ActivityTag::remove() {
  is_removed_ = true;
  expect(calls_.tag(0));
}

std::uint64_t activity_tag(std::int64_t step, InstructionId id, std::size_t instructions) {
  return static_cast<std::uint64_t>(step) * instructions + id + 1;
}

StepActivity activity_of_step(const ActivityLog& log, std::int64_t step, const Timeline& timeline) {
  StepActivity activity = select(log, step, timeline.start.size());
  align(activity.activities, timeline);
  activity.ops = sum_up(activity.activities, timeline);
  return activity;
}

ActivitySums sum_activity(const StepActivity& activity) {
  ActivitySums sums;
  std::map<std::string, Nanos> by_name;
  for (const DeviceActivity& one : activity.activities) {
    sums.kernels += one.kind == kBubblescopeKernel ? 1 : 0;
    sums.copies += one.kind == kBubblescopeCopy ? 1 : 0;
    sums.clears += one.kind == kBubblescopeClear ? 1 : 0;
    sums.all += one.end - one.start;
    if (one.kind == kBubblescopeKernel) by_name[one.name] += one.end - one.start;
  }
  for (const OpActivity& op : activity.ops) {
    sums.between_events += op.between_events;
    sums.covered += op.covered;
  }
  sums.longest.assign(by_name.begin(), by_name.end());
  std::stable_sort(sums.longest.begin(), sums.longest.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  sums.longest.resize(std::min(sums.longest.size(), kMaxNamedKernels));
  return sums;
}

std::string kernel_name(const std::string& compiled) {
  if (!compiled.starts_with("_Z")) return compiled;  // "b" is the mangled name of the type bool
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(compiled.c_str(), nullptr, nullptr, nullptr), &std::free);
  if (demangled == nullptr) return compiled;
  std::string name = demangled.get();
  std::size_t depth = 0;
  for (std::size_t at = name.size(); at > 0 && name.ends_with(')'); --at) {
    depth += name[at - 1] == ')' ? 1 : 0;
    depth -= name[at - 1] == '(' ? 1 : 0;
    if (depth == 0) name.resize(at - 1);
  }
  for (const std::string prefix : {"void ", "bubblescope::exec::", "(anonymous namespace)::"})
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return name;
}

std::string to_string(const StepActivity& activity) {
  const ActivitySums sums = sum_activity(activity);
  std::string text = "activity: " + counted(sums.kernels, "kernel") + ", " +
                     counted(sums.copies, "copy") + ", " + counted(sums.clears, "memory set") +
                     "; their ops take " + milliseconds(sums.between_events) + ", " +
                     percent(sums.between_events - sums.covered, sums.between_events) +
                     " of it in launch gaps";
  std::string longest;
  for (const auto& [name, nanos] : sums.longest)
    longest += (longest.empty() ? "\nactivity: most time in " : ", ") + name + " (" +
               percent(nanos, sums.all) + ")";
  text += longest;
  if (activity.lost + activity.untimed > 0)
    text += "\nactivity: incomplete: records lost: " + std::to_string(activity.lost) +
            ", without a time: " + std::to_string(activity.untimed);
  return text;
}

}  // namespace bubblescope::exec
