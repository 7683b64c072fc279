// Compares the forwards of threads.
#include "traces/measured/thread_splits.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace bubblescope::traces {

namespace {

ThreadOps add(ThreadOps thread, const ChromeOp& op) {
  const ChromeSlice& slice = *op.slice;
  if (!is_compute(op.named.op.kind)) return thread;
  if (!thread.span) thread.span = TimeSpan{slice.start, slice.end};
  widen(*thread.span, slice);
  if (op.named.op.kind != OpKind::kForward) return thread;
  std::optional<std::int64_t> chunk = slice.chunk;
  if (op.named.chunk) chunk = *op.named.chunk;
  if (op.named.has_stage) thread.stages.insert(op.named.op.stage);
  if (chunk) thread.chunks.insert(*chunk);
  const std::int64_t microbatch =
      op.named.has_microbatch ? op.named.op.microbatch : slice.microbatch.value_or(-1);
  const std::int64_t part = op.named.has_stage ? op.named.op.stage : -1 - chunk.value_or(0);
  thread.forwards[part].emplace(microbatch, op.named.step.value_or(slice.step.value_or(-1)));
  return thread;
}

/// Whether no chunk is run by two threads, as where each has a row of a viewer.
bool run_a_chunk_each(const ThreadsOfProcess& threads) {
  std::set<std::int64_t> seen;
  for (const auto& [_, ops] : threads) {
    if (ops.forwards.empty()) continue;
    if (ops.chunks.empty()) return false;
    for (const std::int64_t chunk : ops.chunks)
      if (!seen.insert(chunk).second) return false;
  }
  return true;
}

/// Whether each thread computes only after the one before it has ended.
bool run_in_turn(const ThreadsOfProcess& threads) {
  std::vector<TimeSpan> spans;
  for (const auto& [_, ops] : threads)
    if (!ops.forwards.empty()) spans.push_back(*ops.span);
  std::sort(spans.begin(), spans.end(), [](const TimeSpan& left, const TimeSpan& right) {
    return std::tuple(left.start, left.end) < std::tuple(right.start, right.end);
  });
  for (std::size_t at = 1; at < spans.size(); ++at)
    if (spans[at].start < spans[at - 1].end) return false;
  return true;
}

/// Threads with forwards of different stages, or with the same micro-batches, are ranks. Those
/// that share the micro-batches of a stage are not, and those that run one after another may be
/// one rank in several steps.
ThreadSplit judge_forwards(const ThreadsOfProcess& threads) {
  struct Part {
    std::int64_t threads = 0;
    std::map<ForwardKey, std::int64_t> counts;
  };
  std::map<std::int64_t, Part> parts;
  for (const auto& [_, ops] : threads)
    for (const auto& [number, forwards] : ops.forwards) {
      Part& part = parts[number];
      ++part.threads;
      for (const ForwardKey& forward : forwards) ++part.counts[forward];
    }
  bool any_repeated = false;
  for (const auto& [_, part] : parts) {
    if (part.threads < 2) continue;
    const bool are_shared =
        std::all_of(part.counts.begin(), part.counts.end(),
                    [](const auto& count) { return count.first.first >= 0 && count.second == 1; });
    if (are_shared) return ThreadSplit::kNone;
    any_repeated = true;
  }
  return any_repeated && run_in_turn(threads) ? ThreadSplit::kUnclear : ThreadSplit::kSeen;
}

}  // namespace

ProcessThreads find_process_threads(const ChromeEvents& events, const std::vector<ChromeOp>& ops) {
  ProcessThreads processes;
  for (const ChromeOp& op : ops) {
    ThreadOps& thread = processes[events.threads[op.slice->thread].process][op.slice->thread];
    thread = add(std::move(thread), op);
  }
  return processes;
}

const std::string& label_of(const ChromeEvents& events, std::uint32_t thread) {
  const ChromeThread& known = events.threads[thread];
  return known.name.empty() ? known.id : known.name;
}

std::optional<NamedNumber> find_named_rank(const ChromeEvents& events, std::uint32_t thread) {
  const std::optional<NamedNumber> number = find_rank_number(label_of(events, thread));
  return number && (number->is_rank || number->is_device) ? number : std::nullopt;
}

std::vector<std::uint32_t> list_forward_threads(const ThreadsOfProcess& threads) {
  std::vector<std::uint32_t> found;
  for (const auto& [thread, ops] : threads)
    if (!ops.forwards.empty()) found.push_back(thread);
  return found;
}

bool has_unnamed_parts(const ChromeEvents& events, const ThreadsOfProcess& threads) {
  const std::vector<std::uint32_t> forwards = list_forward_threads(threads);
  return forwards.size() > 1 &&
         !std::all_of(forwards.begin(), forwards.end(), [&](std::uint32_t thread) {
           return find_named_rank(events, thread).has_value();
         });
}

ThreadSplit judge_threads(const ChromeEvents& events, const ThreadsOfProcess& threads,
                          bool is_only_process) {
  const std::vector<std::uint32_t> forwards = list_forward_threads(threads);
  if (forwards.size() < 2) return ThreadSplit::kNone;
  std::set<std::int32_t> numbers;
  bool all_named = true;
  bool name_parts = false;
  for (const std::uint32_t thread : forwards) {
    const std::optional<NamedNumber> number = find_named_rank(events, thread);
    all_named = all_named && number;
    if (number) numbers.insert(number->number);
    name_parts = name_parts || names_part_of_rank(label_of(events, thread));
  }
  if (all_named) return numbers.size() > 1 ? ThreadSplit::kNamed : ThreadSplit::kNone;
  if (name_parts || run_a_chunk_each(threads)) return ThreadSplit::kNone;
  const ThreadSplit split = judge_forwards(threads);
  return split == ThreadSplit::kSeen && !is_only_process ? ThreadSplit::kUnclear : split;
}

}  // namespace bubblescope::traces
