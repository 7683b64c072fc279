// Reads the names of threads, and numbers recorders.
#include "traces/measured/chrome_recorders.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>

#include "traces/measured/chrome_replicas.h"

namespace bubblescope::traces {

namespace {

constexpr std::int32_t kNoReplica = -1;

std::optional<std::int32_t> parse_number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return {};
  text.remove_prefix(at + word.size());
  std::int32_t number = 0;
  const auto [last, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || last == text.data() || number < 0) return {};
  return number;
}

}  // namespace

ChromeRecorders::ChromeRecorders(const ChromeEvents& events,
                                 const std::vector<std::optional<NamedOp>>& named,
                                 const std::string& file)
    : events_(events), named_(named), file_(file) {
  find_threads();
  find_ranks();
}

void ChromeRecorders::find_threads() {
  // Pids are ordered as numbers where they are numbers: "10" follows "9".
  std::set<std::pair<std::size_t, std::string>> processes;
  for (const ChromeThread& thread : events_.threads) {
    std::optional<NamedThread>& named = threads_.emplace_back();
    if (const auto rank = parse_number_after(thread.name, "PP rank ")) {
      named = NamedThread{*rank, parse_number_after(thread.name, "TP rank ").value_or(0)};
      processes.emplace(thread.process.size(), thread.process);
    }
  }
  for (std::size_t at = 0; at < threads_.size(); ++at) {
    if (!threads_[at]) continue;
    NamedThread& named = *threads_[at];
    const std::string& process = events_.threads[at].process;
    named.replica = static_cast<std::int32_t>(
        std::distance(processes.begin(), processes.find({process.size(), process})));
    const auto [first, is_new] =
        first_tensor_.emplace(std::pair(named.replica, named.pipeline_rank), named.tensor_rank);
    if (!is_new) first->second = std::min(first->second, named.tensor_rank);
  }
}

/// Finds the replicas of the ops to which no thread's name gives one, and the ranks of those to
/// which no rule gives one either.
void ChromeRecorders::find_ranks() {
  std::vector<std::size_t> slices;
  std::vector<ChromeOp> all;
  for (std::size_t at = 0; at < named_.size(); ++at) {
    if (!named_[at] || is_named(events_.slices[at].thread)) continue;
    slices.push_back(at);
    all.push_back({&events_.slices[at], *named_[at]});
  }
  const std::vector<std::int32_t> replicas = find_stated_replicas(events_, all, file_);
  stated_replicas_.resize(named_.size(), kNoReplica);
  ranked_.resize(named_.size());
  std::vector<ChromeOp> ops;
  std::vector<std::int32_t> of_ops;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (!replicas.empty()) stated_replicas_[slices[at]] = replicas[at];
    if (all[at].named.rank) continue;
    ranked_[slices[at]] = ops.size();
    ops.push_back(all[at]);
    if (!replicas.empty()) of_ops.push_back(replicas[at]);
  }
  ranks_ = find_chrome_ranks(events_, ops, of_ops, file_);
}

ChromePlace ChromeRecorders::find(std::size_t slice) {
  if (const auto stated = find_by_thread(events_.slices[slice].thread)) return *stated;
  const std::int32_t replica = stated_replicas_[slice];
  if (const std::optional<std::int32_t> rank = named_[slice]->rank)
    return {number_stated(*rank, replica), std::max(0, replica)};
  const std::int32_t found = ranks_.recorder_of[ranked_[slice]];
  return {number_found(found), ranks_.replica_of[static_cast<std::size_t>(found)]};
}

std::optional<ChromePlace> ChromeRecorders::find_by_thread(std::uint32_t thread) {
  const std::optional<NamedThread>& named = threads_[thread];
  if (!named) return {};
  return ChromePlace{number_stated(named->pipeline_rank, kNoReplica), named->replica};
}

bool ChromeRecorders::is_tensor_duplicate(std::uint32_t thread) const {
  const std::optional<NamedThread>& named = threads_[thread];
  return named && first_tensor_.at({named->replica, named->pipeline_rank}) != named->tensor_rank;
}

std::int32_t ChromeRecorders::number_stated(std::int32_t rank, std::int32_t replica) {
  const auto [found, is_new] =
      of_stated_.emplace(std::pair(rank, replica), static_cast<std::int32_t>(recorders_.size()));
  if (is_new) {
    Recorder& recorder = recorders_.emplace_back();
    recorder.where = file_;
    recorder.rank = rank;
    recorder.has_replica = replica != kNoReplica;
  }
  return found->second;
}

std::int32_t ChromeRecorders::number_found(std::int32_t recorder) {
  const auto [found, is_new] =
      of_found_.emplace(recorder, static_cast<std::int32_t>(recorders_.size()));
  if (is_new) recorders_.push_back(ranks_.recorders[static_cast<std::size_t>(recorder)]);
  return found->second;
}

}  // namespace bubblescope::traces
