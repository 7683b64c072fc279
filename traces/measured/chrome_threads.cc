// Compares the forwards of threads.
#include "traces/measured/chrome_threads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/measured/chrome_processes.h"
#include "traces/measured/rank_words.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// A forward's micro-batch and step; -1 where they are unknown.
using ForwardKey = std::pair<std::int64_t, std::int64_t>;

/// The compute ops of one thread.
struct ThreadOps {
  std::set<std::int32_t> stages;                          ///< of its forwards
  std::map<std::int64_t, std::set<ForwardKey>> forwards;  ///< by stage, or below 0 by chunk
  std::set<std::int64_t> chunks;  ///< of its forwards, where they state them
  std::optional<TimeSpan> span;
};

using ThreadsOfProcess = std::map<std::uint32_t, ThreadOps>;

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

enum class Split : std::uint8_t { kNone, kNamed, kSeen, kUnclear };

class ThreadRanks {
 public:
  ThreadRanks(const ChromeEvents& events, const std::vector<ChromeOp>& ops, const std::string& file)
      : events_(events), ops_(ops), file_(file) {
    for (const ChromeOp& op : ops) {
      ThreadOps& thread = processes_[process_of(op)][op.slice->thread];
      thread = add(std::move(thread), op);
    }
  }

  std::optional<ChromeRanks> find() {
    Split split = Split::kNone;
    for (const auto& [pid, threads] : processes_) {
      const Split one = judge(threads);
      if (one == Split::kUnclear) refuse_unclear(pid, threads);
      if (one == Split::kNone && has_unnamed_parts(threads)) whole_.insert(pid);
      split = std::max(split, one);
    }
    if (split == Split::kNone) return {};
    number_threads();
    for (const ChromeOp& op : ops_) ranks_.recorder_of.push_back(recorder_of(op));
    ranks_.replica_of.resize(ranks_.recorders.size());
    describe(split);
    return std::move(ranks_);
  }

 private:
  const std::string& process_of(const ChromeOp& op) const {
    return events_.threads[op.slice->thread].process;
  }

  /// The name of a thread; its number where it has none.
  const std::string& label_of(std::uint32_t thread) const {
    const ChromeThread& known = events_.threads[thread];
    return known.name.empty() ? known.id : known.name;
  }

  /// The number in a thread's name, if that is one of a rank or a device.
  std::optional<NamedNumber> named_number(std::uint32_t thread) const {
    const std::optional<NamedNumber> number = find_rank_number(label_of(thread));
    return number && (number->is_rank || number->is_device) ? number : std::nullopt;
  }

  std::vector<std::uint32_t> forward_threads(const ThreadsOfProcess& threads) const {
    std::vector<std::uint32_t> found;
    for (const auto& [thread, ops] : threads)
      if (!ops.forwards.empty()) found.push_back(thread);
    return found;
  }

  /// Whether several threads run forwards, which are not all named after one rank.
  bool has_unnamed_parts(const ThreadsOfProcess& threads) const {
    const std::vector<std::uint32_t> forwards = forward_threads(threads);
    return forwards.size() > 1 &&
           !std::all_of(forwards.begin(), forwards.end(),
                        [&](std::uint32_t thread) { return named_number(thread).has_value(); });
  }

  Split judge(const ThreadsOfProcess& threads) const {
    const std::vector<std::uint32_t> forwards = forward_threads(threads);
    if (forwards.size() < 2) return Split::kNone;
    std::set<std::int32_t> numbers;
    bool all_named = true;
    bool name_parts = false;
    for (const std::uint32_t thread : forwards) {
      const std::optional<NamedNumber> number = named_number(thread);
      all_named = all_named && number;
      if (number) numbers.insert(number->number);
      name_parts = name_parts || names_part_of_rank(label_of(thread));
    }
    if (all_named) return numbers.size() > 1 ? Split::kNamed : Split::kNone;
    if (name_parts || run_a_chunk_each(threads)) return Split::kNone;
    const Split split = judge_forwards(threads);
    return split == Split::kSeen && processes_.size() > 1 ? Split::kUnclear : split;
  }

  /// Whether no chunk is run by two threads, as where each has a row of a viewer.
  static bool run_a_chunk_each(const ThreadsOfProcess& threads) {
    std::set<std::int64_t> seen;
    for (const auto& [_, ops] : threads) {
      if (ops.forwards.empty()) continue;
      if (ops.chunks.empty()) return false;
      for (const std::int64_t chunk : ops.chunks)
        if (!seen.insert(chunk).second) return false;
    }
    return true;
  }

  /// Threads with forwards of different stages, or with the same micro-batches, are ranks. Those
  /// that share the micro-batches of a stage are not, and those that run one after another may be
  /// one rank in several steps.
  static Split judge_forwards(const ThreadsOfProcess& threads) {
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
      const bool are_shared = std::all_of(
          part.counts.begin(), part.counts.end(),
          [](const auto& count) { return count.first.first >= 0 && count.second == 1; });
      if (are_shared) return Split::kNone;
      any_repeated = true;
    }
    return any_repeated && run_in_turn(threads) ? Split::kUnclear : Split::kSeen;
  }

  /// Whether each thread computes only after the one before it has ended.
  static bool run_in_turn(const ThreadsOfProcess& threads) {
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

  /// A thread with forwards. Threads of a process with the same number are one rank.
  struct Place {
    std::int32_t process = 0;  ///< in order
    std::int64_t number = 0;
    std::string pid;
    std::uint32_t thread = 0;
    bool is_stated = false;
    bool has_number = false;

    /// Whether it is the rank of the thread before it, in order.
    bool is_same_rank(const Place& before, bool is_whole) const {
      return before.pid == pid && (is_whole || (has_number && before.number == number));
    }
  };

  std::vector<Place> find_places() const {
    std::vector<Place> places;
    std::int32_t process = 0;
    std::set<std::string> pids;
    for (const auto& [pid, _] : processes_) pids.insert(pid);
    for (const std::string& pid : order_processes(rank_processes(events_, pids))) {
      for (const std::uint32_t thread : forward_threads(processes_.at(pid))) {
        const std::optional<NamedNumber> named = find_rank_number(label_of(thread));
        const auto tid = parse_number<std::int64_t>(events_.threads[thread].id);
        places.push_back({process, named ? named->number : tid.value_or(0), pid, thread,
                          named && named->is_rank, named && (named->is_rank || named->is_device)});
      }
      ++process;
    }
    std::stable_sort(places.begin(), places.end(), [](const Place& left, const Place& right) {
      return std::tuple(left.process, left.number) < std::tuple(right.process, right.number);
    });
    return places;
  }

  /// Threads keep the numbers that their names state if these differ; others are counted.
  void number_threads() {
    const std::vector<Place> places = find_places();
    std::map<std::int64_t, std::set<std::string>> pids;
    bool keeps = true;
    for (const Place& place : places) {
      pids[place.number].insert(place.pid);
      keeps = keeps && place.has_number && pids[place.number].size() == 1;
    }
    const auto is_stated = [](const Place& place) { return place.is_stated; };
    const bool are_stated = keeps && std::all_of(places.begin(), places.end(), is_stated);
    if (!keeps && std::all_of(places.begin(), places.end(), is_stated)) refuse_repeated(places);
    const Place* before = nullptr;
    for (const Place& place : places) {
      const bool is_whole = whole_.contains(place.pid);
      if (before == nullptr || !place.is_same_rank(*before, is_whole)) {
        Recorder& recorder = ranks_.recorders.emplace_back();
        recorder.where = file_;
        recorder.rank =
            static_cast<std::int32_t>(keeps ? place.number : std::ssize(ranks_.recorders) - 1);
        recorder.is_process = !are_stated;
        recorder.is_device = keeps && !are_stated;
        recorder.is_thread = !place.has_number && !is_whole;
        labels_.push_back(is_whole ? "process " + place.pid : label_of(place.thread));
      }
      before = &place;
      const auto recorder = static_cast<std::int32_t>(ranks_.recorders.size()) - 1;
      recorders_[place.thread] = recorder;
      if (place.has_number) by_number_[{place.pid, place.number}] = recorder;
      of_process_[place.pid].insert(recorder);
      const ThreadOps& ops = processes_.at(place.pid).at(place.thread);
      for (const std::int32_t stage : ops.stages) by_stage_[{place.pid, stage}].insert(recorder);
    }
  }

  /// An op on a thread without forwards is of the rank that its thread's name or its stage states.
  std::int32_t recorder_of(const ChromeOp& op) const {
    const std::uint32_t thread = op.slice->thread;
    if (const auto own = recorders_.find(thread); own != recorders_.end()) return own->second;
    const std::string& pid = process_of(op);
    if (const std::optional<NamedNumber> number = named_number(thread))
      if (const auto named = by_number_.find({pid, number->number}); named != by_number_.end())
        return named->second;
    if (op.named.has_stage)
      if (const auto run = by_stage_.find({pid, op.named.op.stage});
          run != by_stage_.end() && run->second.size() == 1)
        return *run->second.begin();
    if (const auto all = of_process_.find(pid); all != of_process_.end() && all->second.size() == 1)
      return *all->second.begin();
    throw Error(fmt::format(
        "{}: the forwards of process {} lie on {} threads, so these are ranks, but '{}' lies on "
        "thread {}, which runs no forward, and nothing says of which rank it is; state the rank in "
        "args.pp_rank of every op, in the names of all threads ('rank 0'), or by a rule with "
        "\"rank\"",
        file_, pid, forward_threads(processes_.at(pid)).size(), op.slice->name, label_of(thread)));
  }

  [[noreturn]] void refuse_repeated(const std::vector<Place>& places) const {
    throw Error(fmt::format(
        "{}: threads of several processes are named after the same rank ({} in process {} and "
        "others); these may be replicas or ranks of one pipeline: give each replica a file "
        "of its own, or state args.pp_rank of every op",
        file_, label_of(places.front().thread), places.front().pid));
  }

  [[noreturn]] void refuse_unclear(const std::string& pid, const ThreadsOfProcess& threads) const {
    std::vector<std::string> labels;
    for (const std::uint32_t thread : forward_threads(threads)) labels.push_back(label_of(thread));
    throw Error(fmt::format(
        "{}: the forwards of process {} lie on {} threads ({}), and nothing shows whether each is "
        "a rank or the process is; state the rank in args.pp_rank of every op, in the names of the "
        "threads ('rank 0'), or by a rule with \"rank\"",
        file_, pid, labels.size(), list(labels)));
  }

  static std::string list(const std::vector<std::string>& labels) {
    constexpr std::size_t kShown = 8;
    const auto shown = static_cast<std::ptrdiff_t>(std::min(kShown, labels.size()));
    return fmt::format("{}{}", fmt::join(labels.begin(), labels.begin() + shown, ", "),
                       labels.size() > kShown ? " ..." : "");
  }

  void describe(Split split) {
    if (!whole_.empty())
      ranks_.remarks.doubts.push_back(
          fmt::format("{}: threads are ranks in some processes, but parts of one rank in process "
                      "{}, where they share micro-batches or run a chunk each; the ranks are, in "
                      "this order: {}",
                      file_, list({whole_.begin(), whole_.end()}), list(labels_)));
    if (split == Split::kNamed)
      ranks_.remarks.notes.push_back(fmt::format(
          "{}: each thread counts as the rank that it is named after: {}", file_, list(labels_)));
    else
      ranks_.remarks.doubts.push_back(
          fmt::format("{}: the forwards of one process lie on {} threads, so each of these counts "
                      "as a rank, in "
                      "the order of their numbers: {}",
                      file_, labels_.size(), list(labels_)));
  }

  const ChromeEvents& events_;
  const std::vector<ChromeOp>& ops_;
  const std::string& file_;
  std::map<std::string, ThreadsOfProcess> processes_;
  std::set<std::string> whole_;  ///< processes that are ranks, though several threads run forwards
  ChromeRanks ranks_;
  std::vector<std::string> labels_;                  ///< [recorder]
  std::map<std::uint32_t, std::int32_t> recorders_;  ///< by thread with forwards
  std::map<std::pair<std::string, std::int64_t>, std::int32_t> by_number_;
  std::map<std::pair<std::string, std::int32_t>, std::set<std::int32_t>> by_stage_;
  std::map<std::string, std::set<std::int32_t>> of_process_;
};

}  // namespace

std::optional<ChromeRanks> rank_by_threads(const ChromeEvents& events,
                                           const std::vector<ChromeOp>& ops,
                                           const std::string& file) {
  return ThreadRanks(events, ops, file).find();
}

}  // namespace bubblescope::traces
