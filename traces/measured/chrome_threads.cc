// Numbers threads that are ranks, and finds those of ops on other threads.
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
#include "traces/measured/thread_splits.h"

namespace bubblescope::traces {

namespace {

class ThreadRanks {
 public:
  ThreadRanks(const ChromeEvents& events, const std::vector<ChromeOp>& ops, const std::string& file)
      : events_(events), ops_(ops), file_(file), processes_(find_process_threads(events, ops)) {}

  std::optional<ChromeRanks> find() {
    ThreadSplit split = ThreadSplit::kNone;
    for (const auto& [pid, threads] : processes_) {
      const ThreadSplit one = judge_threads(events_, threads, processes_.size() == 1);
      if (one == ThreadSplit::kUnclear) refuse_unclear(pid, threads);
      if (one == ThreadSplit::kNone && has_unnamed_parts(events_, threads)) whole_.insert(pid);
      split = std::max(split, one);
    }
    if (split == ThreadSplit::kNone) return {};
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
      for (const std::uint32_t thread : list_forward_threads(processes_.at(pid))) {
        const std::optional<NamedNumber> named = find_rank_number(label_of(events_, thread));
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
        labels_.push_back(is_whole ? "process " + place.pid : label_of(events_, place.thread));
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
    if (const std::optional<NamedNumber> number = find_named_rank(events_, thread))
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
        file_, pid, list_forward_threads(processes_.at(pid)).size(), op.slice->name,
        label_of(events_, thread)));
  }

  [[noreturn]] void refuse_repeated(const std::vector<Place>& places) const {
    throw Error(fmt::format(
        "{}: threads of several processes are named after the same rank ({} in process {} and "
        "others); these may be replicas or ranks of one pipeline: give each replica a file "
        "of its own, or state args.pp_rank of every op",
        file_, label_of(events_, places.front().thread), places.front().pid));
  }

  [[noreturn]] void refuse_unclear(const std::string& pid, const ThreadsOfProcess& threads) const {
    std::vector<std::string> labels;
    for (const std::uint32_t thread : list_forward_threads(threads))
      labels.push_back(label_of(events_, thread));
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

  void describe(ThreadSplit split) {
    if (!whole_.empty())
      ranks_.remarks.doubts.push_back(
          fmt::format("{}: threads are ranks in some processes, but parts of one rank in process "
                      "{}, where they share micro-batches or run a chunk each; the ranks are, in "
                      "this order: {}",
                      file_, list({whole_.begin(), whole_.end()}), list(labels_)));
    if (split == ThreadSplit::kNamed)
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
  ProcessThreads processes_;
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
