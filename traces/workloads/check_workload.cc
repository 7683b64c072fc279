// A workload hangs exactly if what its jobs wait for has a cycle. Every job has two moments, its
// start and its end.
#include "traces/workloads/check_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "traces/workloads/match_workload.h"

namespace bubblescope::traces {

namespace {

using Moment = std::uint32_t;
constexpr std::size_t kMaxShown = 12;  ///< jobs of a cycle in words

/// The moments of all jobs, and which wait for which.
class Moments {
 public:
  Moments(const Workload& workload, const WorkloadMatches& matches, bool rendezvous)
      : workload_(workload) {
    for (const std::vector<WorkloadJob>& jobs : workload.ranks) {
      first_.push_back(count_);
      count_ += static_cast<Moment>(2 * jobs.size());
    }
    collective_starts_ = count_;  // one more moment for each: all its ranks have started
    count_ += static_cast<Moment>(matches.collectives.size());
    add_jobs();
    for (const auto& [send, receive] : matches.messages) {
      wait(end_of(receive), start_of(send));
      if (rendezvous) wait(end_of(send), start_of(receive));
    }
    for (std::size_t at = 0; at < matches.collectives.size(); ++at)
      for (const JobId id : matches.collectives[at]) {
        const auto all = static_cast<Moment>(collective_starts_ + at);
        wait(all, start_of(id));
        wait(end_of(id), all);
      }
    sort_edges();
  }

  /// Returns moments of which each waits for the next, and the last for the first; empty if there
  /// is no such cycle.
  std::vector<Moment> find_cycle() const {
    const std::vector<std::uint32_t> missing = run();
    Moment at = 0;
    while (at < count_ && missing[at] == 0) ++at;
    if (at == count_) return {};
    // Each moment that is left waits for another that is left, so this walk comes back.
    std::vector<std::uint32_t> visit(count_, 0);
    std::vector<Moment> path;
    while (visit[at] == 0) {
      path.push_back(at);
      visit[at] = static_cast<std::uint32_t>(path.size());
      const std::span<const Moment> awaited = awaited_by(at);
      at = *std::ranges::find_if(awaited, [&](Moment other) { return missing[other] > 0; });
    }
    return {path.begin() + (visit[at] - 1), path.end()};
  }

  std::optional<JobId> job_of(Moment moment) const {
    if (moment >= collective_starts_) return std::nullopt;
    const auto after = std::ranges::upper_bound(first_, moment);
    const auto rank = static_cast<std::uint32_t>(after - first_.begin() - 1);
    return JobId{rank, (moment - first_[rank]) / 2};
  }

 private:
  Moment start_of(JobId id) const { return first_[id.rank] + 2 * id.job; }
  Moment end_of(JobId id) const { return start_of(id) + 1; }
  void wait(Moment waiting, Moment awaited) { edges_.emplace_back(waiting, awaited); }

  void add_jobs() {
    for (std::uint32_t rank = 0; rank < workload_.ranks.size(); ++rank)
      for (std::uint32_t job = 0; job < workload_.ranks[rank].size(); ++job) {
        const JobId id{rank, job};
        wait(end_of(id), start_of(id));
        for (const std::uint32_t other : workload_.ranks[rank][job].waits_for)
          wait(start_of(id), end_of({rank, other}));
        for (const std::uint32_t other : workload_.ranks[rank][job].starts_after)
          wait(start_of(id), start_of({rank, other}));
      }
  }

  void sort_edges() {
    std::ranges::sort(edges_);
    offsets_.assign(count_ + 1, 0);
    for (const auto& [waiting, awaited] : edges_) ++offsets_[waiting + 1];
    for (Moment at = 0; at < count_; ++at) offsets_[at + 1] += offsets_[at];
    for (const auto& [waiting, awaited] : edges_) awaited_.push_back(awaited);
  }

  std::span<const Moment> awaited_by(Moment waiting) const {
    return std::span(awaited_).subspan(offsets_[waiting],
                                       offsets_[waiting + 1] - offsets_[waiting]);
  }

  /// For every moment, for how many it still waits when nothing can start any more.
  std::vector<std::uint32_t> run() const {
    std::vector<std::uint32_t> missing(count_, 0);
    std::vector<std::size_t> next_offsets(count_ + 1, 0);
    for (const auto& [waiting, awaited] : edges_) {
      ++missing[waiting];
      ++next_offsets[awaited + 1];
    }
    for (Moment at = 0; at < count_; ++at) next_offsets[at + 1] += next_offsets[at];
    std::vector<Moment> next(edges_.size());
    std::vector<std::size_t> place(next_offsets);
    for (const auto& [waiting, awaited] : edges_) next[place[awaited]++] = waiting;
    std::vector<Moment> free;
    for (Moment at = 0; at < count_; ++at)
      if (missing[at] == 0) free.push_back(at);
    while (!free.empty()) {
      const Moment at = free.back();
      free.pop_back();
      for (std::size_t edge = next_offsets[at]; edge < next_offsets[at + 1]; ++edge)
        if (--missing[next[edge]] == 0) free.push_back(next[edge]);
    }
    return missing;
  }

  const Workload& workload_;
  std::vector<Moment> first_;  ///< [rank]: the start of its first job
  Moment collective_starts_ = 0;
  Moment count_ = 0;
  std::vector<std::pair<Moment, Moment>> edges_;  ///< who waits, and for what
  std::vector<std::size_t> offsets_;
  std::vector<Moment> awaited_;
};

/// Returns a text such as "l3 (line 7) of rank 0 waits for l5 (line 20) of rank 1, which waits for
/// the first".
std::string describe_cycle(const Workload& workload, const Moments& moments) {
  std::vector<JobId> jobs;
  for (const Moment moment : moments.find_cycle())
    if (const std::optional<JobId> id = moments.job_of(moment))
      if (jobs.empty() || jobs.back() != *id) jobs.push_back(*id);
  if (jobs.empty()) return "";
  if (jobs.size() > 1 && jobs.back() == jobs.front()) jobs.pop_back();
  std::string text;
  for (std::size_t at = 0; at < jobs.size() && at < kMaxShown; ++at)
    text += fmt::format("{}{} of rank {}",
                        at == 0   ? ""
                        : at == 1 ? " waits for "
                                  : ", which waits for ",
                        workload.ranks[jobs[at].rank][jobs[at].job].name, jobs[at].rank);
  if (jobs.size() > kMaxShown) text += fmt::format(", and {} more", jobs.size() - kMaxShown);
  return text + (jobs.size() == 1 ? " waits for itself" : ", which waits for the first");
}

}  // namespace

WorkloadVerdict check_workload(const Workload& workload) {
  WorkloadMatches matches = match_workload(workload);
  WorkloadVerdict verdict;
  for (const std::vector<WorkloadJob>& jobs : workload.ranks) verdict.jobs += jobs.size();
  verdict.messages = matches.messages.size();
  verdict.collectives = matches.collectives.size();
  verdict.shared_matches = matches.shared;
  verdict.wildcards = matches.wildcards;
  verdict.eager_hang = std::move(matches.eager_hang);
  if (verdict.eager_hang.empty())
    verdict.eager_hang = describe_cycle(workload, Moments(workload, matches, false));
  verdict.rendezvous_hang = std::move(matches.rendezvous_hang);
  if (verdict.rendezvous_hang.empty())
    verdict.rendezvous_hang = describe_cycle(workload, Moments(workload, matches, true));
  verdict.problems = std::move(matches.problems);
  return verdict;
}

}  // namespace bubblescope::traces
