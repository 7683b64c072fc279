// One queue of events in the order of their times, and then of their numbers.
#include "tests/support/loggopsim_replay.h"

#include <algorithm>
#include <list>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace bubblescope::tests {

namespace {

using Kind = ForeignJob::Kind;

class LogGopSim {
 public:
  explicit LogGopSim(const ForeignTrace& trace) : trace_(trace), ranks_(trace.size()) {
    for (std::size_t rank = 0; rank < trace.size(); ++rank) {
      Rank& state = ranks_[rank];
      state.missing.resize(trace[rank].size());
      state.next.resize(trace[rank].size());
      std::vector<std::size_t> free;
      for (std::size_t job = 0; job < trace[rank].size(); ++job) {
        state.missing[job] = trace[rank][job].waits_for.size();
        for (const std::size_t awaited : trace[rank][job].waits_for)
          state.next.at(awaited).push_back(job);
        if (state.missing[job] == 0) free.push_back(job);
      }
      push_free(rank, std::move(free));
    }
  }

  std::int64_t run() && {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      take(event);
    }
    std::int64_t last = 0;
    std::size_t jobs = 0;
    for (std::size_t rank = 0; rank < trace_.size(); ++rank) {
      jobs += trace_[rank].size();
      if (!ranks_[rank].arrived.empty() || !ranks_[rank].posted.empty())
        throw std::runtime_error("messages without a partner");
      for (const auto& [cpu, time] : ranks_[rank].cpu_free) last = std::max(last, time);
    }
    if (done_ != jobs) throw std::runtime_error("jobs wait for ever");
    return last;
  }

 private:
  /// A job that is due, or the message of a send that arrives.
  struct Event {
    std::int64_t time = 0;
    std::size_t number = 0;
    std::size_t rank = 0;
    std::size_t job = 0;
    bool arrives = false;  ///< then `job` is the send, of the rank `sender`
    std::size_t sender = 0;

    bool operator<(const Event& other) const {  // the top of the queue is the largest
      return std::tie(other.time, other.number) < std::tie(time, number);
    }
  };
  /// The receive that is posted, or the message that arrived: its sender, tag and receive.
  struct Waiting {
    std::size_t peer = 0;
    std::uint64_t tag = 0;
    std::size_t job = 0;
  };
  struct Rank {
    std::vector<std::size_t> missing;
    std::vector<std::vector<std::size_t>> next;
    std::map<int, std::int64_t> cpu_free;
    std::list<Waiting> posted;
    std::list<Waiting> arrived;
  };

  /// Sends first, then receives, then calculations.
  static int order_of(const ForeignJob& job) {
    return job.kind == Kind::kSend ? 0 : job.kind == Kind::kReceive ? 1 : 2;
  }

  void push_free(std::size_t rank, std::vector<std::size_t> jobs) {
    std::stable_sort(jobs.begin(), jobs.end(), [&](std::size_t left, std::size_t right) {
      return order_of(trace_[rank][left]) < order_of(trace_[rank][right]);
    });
    for (const std::size_t job : jobs)
      events_.push({ranks_[rank].cpu_free[trace_[rank][job].cpu], number_++, rank, job});
  }

  void finish(std::size_t rank, std::size_t job) {
    ++done_;
    std::vector<std::size_t> free;
    for (const std::size_t next : ranks_[rank].next[job])
      if (--ranks_[rank].missing[next] == 0) free.push_back(next);
    push_free(rank, std::move(free));
  }

  static bool take_match(std::list<Waiting>& list, std::size_t peer, std::uint64_t tag,
                         Waiting& found) {
    for (auto at = list.begin(); at != list.end(); ++at)
      if (at->peer == peer && at->tag == tag) {
        found = *at;
        list.erase(at);
        return true;
      }
    return false;
  }

  void take(const Event& event) {
    Rank& rank = ranks_[event.rank];
    const ForeignJob& job = trace_[event.arrives ? event.sender : event.rank][event.job];
    std::int64_t& cpu_free = rank.cpu_free[job.cpu];
    const bool needs_cpu = event.arrives || job.kind != Kind::kReceive;
    if (needs_cpu && cpu_free > event.time) {
      Event later = event;
      later.time = cpu_free;
      return events_.push(later);
    }
    Waiting match;
    if (event.arrives) {
      cpu_free = event.time;
      if (take_match(rank.posted, event.sender, job.tag, match))
        finish(event.rank, match.job);
      else
        rank.arrived.push_back({event.sender, job.tag, 0});
    } else if (job.kind == Kind::kCalculate) {
      cpu_free = event.time + job.duration;
      finish(event.rank, event.job);
    } else if (job.kind == Kind::kSend) {
      cpu_free = event.time;
      events_.push({event.time + job.duration, number_++, job.peer, event.job, true, event.rank});
      finish(event.rank, event.job);
    } else if (take_match(rank.arrived, job.peer, job.tag, match)) {
      finish(event.rank, event.job);
    } else {
      rank.posted.push_back({job.peer, job.tag, event.job});
    }
  }

  const ForeignTrace& trace_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event> events_;
  std::size_t number_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

std::int64_t replay_on_loggopsim(const ForeignTrace& trace) { return LogGopSim(trace).run(); }

}  // namespace bubblescope::tests
