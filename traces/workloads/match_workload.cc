// Matches the n-th send of a channel with its n-th receive.
#include "traces/workloads/match_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/ir/counted.h"

namespace bubblescope::traces {

namespace {

/// Source, destination, tag.
using Channel = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
/// The source and the tag of a receive; none: any.
using ReceivePattern = std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>;
struct ChannelEnds {
  std::vector<JobId> sends;
  std::vector<JobId> receives;
};

/// In which modes a job that does not fit waits for ever.
enum class Hangs : std::uint8_t { kNever, kRendezvous, kAlways };

class Matcher {
 public:
  explicit Matcher(const Workload& workload) : workload_(workload) {}

  WorkloadMatches match() && {
    for (std::uint32_t rank = 0; rank < workload_.ranks.size(); ++rank)
      for (std::uint32_t job = 0; job < workload_.ranks[rank].size(); ++job) sort_in({rank, job});
    for (const auto& [channel, ends] : channels_) match_channel(ends);
    for (auto& [group, members] : groups_) match_group(members);
    count_any_receives();
    std::ranges::stable_sort(matches_.problems, {}, [](const Problem& problem) {
      return std::pair(problem.rank, problem.position);
    });
    return std::move(matches_);
  }

 private:
  const WorkloadJob& at(JobId id) const { return workload_.ranks[id.rank][id.job]; }

  void add_problem(JobId id, const std::string& what, Hangs hangs) {
    const std::string message = at(id).name + " " + what;
    const std::string hang = fmt::format("{} of rank {} {}", at(id).name, id.rank, what);
    matches_.problems.push_back(
        {static_cast<std::int32_t>(id.rank), static_cast<std::int32_t>(id.job), message});
    if (hangs == Hangs::kAlways && matches_.eager_hang.empty()) matches_.eager_hang = hang;
    if (hangs != Hangs::kNever && matches_.rendezvous_hang.empty()) matches_.rendezvous_hang = hang;
  }

  Hangs without_partner(JobId id) const {
    return at(id).kind == WorkloadKind::kSend ? Hangs::kRendezvous : Hangs::kAlways;
  }

  /// Returns a text such as "sends 16 bytes to rank 1 with tag 7".
  std::string describe(JobId id) const {
    const WorkloadJob& job = at(id);
    const bool sends = job.kind == WorkloadKind::kSend;
    return fmt::format("{} {} {} rank {} with tag {}", sends ? "sends" : "receives",
                       counted(job.bytes, "byte"), sends ? "to" : "from", *job.peer, *job.tag);
  }

  void sort_in(JobId id) {
    const WorkloadJob& job = at(id);
    if (job.kind == WorkloadKind::kCompute) return;
    if (job.kind == WorkloadKind::kCollective) {
      groups_[job.group][id.rank].push_back(id);
      return;
    }
    if (!job.peer || !job.tag) {
      any_receives_[id.rank].push_back(id);
      any_patterns_[id.rank].emplace(job.peer, job.tag);
      ++matches_.wildcards;
      return;
    }
    if (*job.peer < 0 || *job.peer >= std::ssize(workload_.ranks))
      return add_problem(id,
                         fmt::format("{}, but the workload has {}{}", describe(id),
                                     counted(std::ssize(workload_.ranks), "rank"),
                                     workload_.format == "chakra" ? "; give the files of all" : ""),
                         without_partner(id));
    const auto own = static_cast<std::int64_t>(id.rank);
    if (job.kind == WorkloadKind::kSend)
      channels_[{own, *job.peer, *job.tag}].sends.push_back(id);
    else
      channels_[{*job.peer, own, *job.tag}].receives.push_back(id);
  }

  void match_channel(const ChannelEnds& ends) {
    const std::size_t pairs = std::min(ends.sends.size(), ends.receives.size());
    if (pairs > 1) matches_.shared += pairs;
    for (std::size_t n = 0; n < pairs; ++n) match_message(ends.sends[n], ends.receives[n]);
    for (std::size_t n = pairs; n < ends.receives.size(); ++n)
      add_problem(ends.receives[n], describe(ends.receives[n]) + ", which nobody sends",
                  Hangs::kAlways);
    for (std::size_t n = pairs; n < ends.sends.size(); ++n)
      if (!fits_any_receive(ends.sends[n]))
        add_problem(ends.sends[n], describe(ends.sends[n]) + ", where nothing receives it",
                    Hangs::kRendezvous);
  }

  void match_message(JobId send, JobId receive) {
    matches_.messages.emplace_back(send, receive);
    if (at(send).bytes != at(receive).bytes)
      add_problem(send,
                  fmt::format("{}, where {} receives {}", describe(send), at(receive).name,
                              at(receive).bytes),
                  Hangs::kNever);
  }

  /// Whether a receive from any rank or with any tag may take a send that no other receives.
  bool fits_any_receive(JobId send) {
    const auto rank = static_cast<std::uint32_t>(*at(send).peer);
    const std::set<ReceivePattern>& patterns = any_patterns_[rank];
    const std::optional<std::int64_t> source = send.rank;
    const std::optional<std::int64_t> tag = at(send).tag;
    if (!patterns.contains({std::nullopt, tag}) && !patterns.contains({source, std::nullopt}) &&
        !patterns.contains({std::nullopt, std::nullopt}))
      return false;
    ++any_sends_[rank];
    return true;
  }

  /// Times decide which send such a receive takes, so only their numbers must agree.
  void count_any_receives() {
    for (const auto& [rank, receives] : any_receives_) {
      const std::size_t sends = any_sends_[rank];
      if (sends == receives.size()) continue;
      add_problem(receives.front(),
                  fmt::format("is the first of {} from any rank or with any tag, for {}",
                              counted(std::ssize(receives), "receive"),
                              counted(static_cast<std::int64_t>(sends), "send")),
                  sends < receives.size() ? Hangs::kAlways : Hangs::kRendezvous);
    }
  }

  void match_group(std::map<std::uint32_t, std::vector<JobId>>& members) {
    std::size_t count = 0;
    if (at(members.begin()->second.front()).group.empty())
      for (std::uint32_t rank = 0; rank < workload_.ranks.size(); ++rank) members[rank];
    for (const auto& [rank, jobs] : members) count = std::max(count, jobs.size());
    for (std::size_t n = 0; n < count; ++n) match_collective(members, n);
  }

  void match_collective(const std::map<std::uint32_t, std::vector<JobId>>& members, std::size_t n) {
    std::vector<JobId> jobs;
    for (const auto& [rank, of_rank] : members)
      if (n < of_rank.size()) jobs.push_back(of_rank[n]);
    const WorkloadJob& first = at(jobs.front());
    for (const auto& [rank, of_rank] : members)
      if (n == of_rank.size())  // once per rank, which lacks those that follow as well
        add_problem(
            jobs.front(),
            fmt::format("is collective {} of its group, but rank {} has only {}", n + 1, rank, n),
            Hangs::kAlways);
    for (const JobId id : jobs)
      if (at(id).collective != first.collective || at(id).bytes != first.bytes)
        add_problem(id,
                    fmt::format("is of type {} and {}, but {} of rank {} is of type {} and {}",
                                at(id).collective, counted(at(id).bytes, "byte"), first.name,
                                jobs.front().rank, first.collective, counted(first.bytes, "byte")),
                    Hangs::kNever);
    matches_.collectives.push_back(std::move(jobs));
  }

  const Workload& workload_;
  WorkloadMatches matches_;
  std::map<Channel, ChannelEnds> channels_;
  std::map<std::string, std::map<std::uint32_t, std::vector<JobId>>> groups_;
  std::map<std::uint32_t, std::vector<JobId>> any_receives_;
  std::map<std::uint32_t, std::set<ReceivePattern>> any_patterns_;  ///< [rank]: what these accept
  std::map<std::uint32_t, std::size_t> any_sends_;  ///< [rank]: sends that only these may take
};

}  // namespace

WorkloadMatches match_workload(const Workload& workload) { return Matcher(workload).match(); }

}  // namespace bubblescope::traces
