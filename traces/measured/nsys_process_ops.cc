// Reads the names of ranges, and counts what they do not say.
#include "traces/measured/nsys_process_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "sim/ir/error.h"
#include "traces/measured/message_ranges.h"
#include "traces/measured/nsys_messages.h"
#include "traces/measured/unnumbered_ranges.h"

namespace bubblescope::traces {

namespace {

bool is_compute_range(const OpRange& range) { return is_compute(range.named.op.kind); }

/// Drops each range within another one of the same op, which is that op again.
std::vector<OpRange> without_inner(const std::vector<OpRange>& ranges) {
  std::vector<OpRange> outer;
  for (const OpRange& range : ranges) {
    const bool is_inner = !outer.empty() && range.host.end <= outer.back().host.end;
    if (!is_inner || !is_same_op(outer.back(), range)) outer.push_back(range);
  }
  return outer;
}

/// Whether a range begins before the previous one ends, where both compute.
bool do_overlap(const std::vector<OpRange>& ops) {
  const auto overlap = [](const OpRange& left, const OpRange& right) {
    return right.host.start < left.host.end && is_compute_range(left) && is_compute_range(right);
  };
  return std::adjacent_find(ops.begin(), ops.end(), overlap) != ops.end();
}

std::vector<TimedCall> list_calls(const NsysRecording& recording,
                                  const std::vector<HostRange>& ranges) {
  std::vector<TimedCall> calls;
  for (const HostRange& range : ranges)
    if (const auto call = parse_message_call(recording.names[range.name]))
      calls.push_back({*call, range.start, range.end});
  return calls;
}

/// The thread that has the messages, of which there must be one.
std::int64_t find_calling_thread(const NsysRecording& recording,
                                 const std::vector<HostRange>& ranges, const std::string& where) {
  std::set<std::int64_t> threads;
  for (const HostRange& range : ranges)
    if (parse_message_call(recording.names[range.name])) threads.insert(range.thread);
  if (threads.size() == 1) return *threads.begin();
  throw Error(
      fmt::format("{}: {} threads have messages, so that what lies between them cannot be "
                  "distinguished; annotate the ops",
                  where, threads.size()));
}

}  // namespace

std::string name_process(const std::string& path, std::int64_t process) {
  return fmt::format("{}: process {}", path, (process >> 24) & 0xffffff);
}

NsysProcessOps NsysOpFinder::find(std::int64_t process, const std::vector<HostRange>& ranges) {
  NsysProcessOps found = find_named(process, ranges);
  found.calls = list_calls(recording_, ranges);
  const auto no_chunk = [](const OpRange& op) { return op.named.may_have_chunk; };
  const bool lack_chunks =
      are_interleaved(found.calls) && std::all_of(found.ops.begin(), found.ops.end(), no_chunk);
  const bool any_named = std::any_of(found.ops.begin(), found.ops.end(), is_compute_range);
  if (any_named && !lack_chunks) {
    if (!found.calls.empty()) find_received_calls(found.ops, found.calls);
  } else if (found.calls.empty()) {
    found.ops.clear();
  } else {
    const std::int64_t thread =
        find_calling_thread(recording_, ranges, name_process(path_, process));
    found.lie_between_messages = true;
    found.have_chunks_by_order = are_interleaved(found.calls);
    found.ops = found.have_chunks_by_order ? find_in_chunks(process, found.calls, thread)
                                           : find_between(process, found.calls, thread);
  }
  if (!found.ops.empty()) assign_steps(found, ranges);
  if (!found.ops.empty()) found.marks = mark_steps(recording_, ranges, found.ops);
  return found;
}

NsysProcessOps NsysOpFinder::find_named(std::int64_t process,
                                        const std::vector<HostRange>& ranges) const {
  std::vector<OpRange> all;
  UnnumberedRanges unnumbered;
  for (const HostRange& range : ranges) {
    const std::string& name = recording_.names[range.name];
    OpRange op{range.thread, {range.start, range.end}, {}};
    if (const std::optional<NamedOp> named = names_.find(name).op) {
      op.named = *named;
    } else if (const auto pair = parse_pair_name(name)) {
      op.named.op = pair->front();
      op.second = pair->back();
    } else {
      continue;
    }
    all.push_back(op);
    if (is_compute_range(op)) unnumbered.add(op.host, !is_unnumbered(op), name);
  }
  NsysProcessOps found;
  if (unnumbered.any_numbered()) {
    std::erase_if(all, is_unnumbered);
    found.unnumbered = unnumbered.describe();
  }
  found.ops = without_inner(all);
  found.overlap = do_overlap(found.ops);
  set_kinds(found.ops);
  found.have_unnamed_backwards = find_unnamed_backwards(recording_, process, found.ops);
  return found;
}

std::vector<OpRange> NsysOpFinder::find_between(std::int64_t process,
                                                const std::vector<TimedCall>& calls,
                                                std::int64_t thread) const {
  std::vector<OpRange> ops;
  for (const BetweenCalls& found : find_ops_between(calls, name_process(path_, process))) {
    OpRange op{thread, {found.start, found.end}, {{}, false, false}};
    op.named.op.kind = found.kind;
    op.received = {calls[found.received].start, calls[found.received].end};
    ops.push_back(op);
  }
  return ops;
}

std::vector<OpRange> NsysOpFinder::find_in_chunks(std::int64_t process,
                                                  const std::vector<TimedCall>& calls,
                                                  std::int64_t thread) {
  if (chunks_.empty()) {
    // The calls of all processes together say which chunks their ops run.
    std::map<std::int64_t, std::vector<TimedCall>> all;
    for (const HostRange& range : recording_.ranges)
      if (const auto call = parse_message_call(recording_.names[range.name]))
        all[process_of(range.thread)].push_back({*call, range.start, range.end});
    chunks_ = find_interleaved_ops(all, path_);
  }
  std::vector<OpRange> ops;
  for (const CalledOps& found : chunks_.at(process)) {
    OpRange op{thread, {found.start, found.end}, {found.op}, found.backward};
    op.named.step = found.step;
    if (found.received) op.received = {calls[*found.received].start, calls[*found.received].end};
    ops.push_back(op);
  }
  return ops;
}

/// Finds the steps by the range of a step, by the number that the name states, or by occurrence.
void NsysOpFinder::assign_steps(NsysProcessOps& found, const std::vector<HostRange>& ranges) const {
  std::vector<std::pair<TimeSpan, std::int64_t>> marks;
  for (const HostRange& range : ranges)
    if (const NameMeaning& meaning = names_.find(recording_.names[range.name]); meaning.is_step)
      marks.push_back({{range.start, range.end}, meaning.step.value_or(std::ssize(marks))});
  if (!marks.empty()) {
    found.outside_steps = std::erase_if(found.ops, [&](OpRange& op) {
      const auto mark = std::find_if(marks.begin(), marks.end(), [&](const auto& at) {
        return op.host.start >= at.first.start && op.host.start <= at.first.end;
      });
      if (mark != marks.end()) op.step = mark->second;
      return mark == marks.end();
    });
  } else if (found.ops.front().named.step) {
    for (OpRange& op : found.ops) op.step = op.named.step.value_or(0);
  } else if (is_unnumbered(found.ops.front())) {
    count_unnumbered(found.ops);
  } else {
    found.are_uneven = !count_occurrences(found.ops);
  }
}

}  // namespace bubblescope::traces
