// Completes the replicas that ops state.
#include "traces/measured/chrome_replicas.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "sim/ir/error.h"
#include "traces/files/quote.h"

namespace bubblescope::traces {

namespace {

std::optional<std::int32_t> replica_in(const ChromeSlice& slice) {
  constexpr std::int64_t kMaxReplica = 1 << 20;
  if (!slice.replica || *slice.replica < 0 || *slice.replica > kMaxReplica) return {};
  return static_cast<std::int32_t>(*slice.replica);
}

using Replicas = std::set<std::int32_t>;

/// The replicas that the ops of every thread, of every process and of the file state.
class StatedReplicas {
 public:
  StatedReplicas(const ChromeEvents& events, const std::vector<ChromeOp>& ops) : events_(events) {
    for (const ChromeOp& op : ops) {
      const std::optional<std::int32_t> replica = replica_in(*op.slice);
      if (!replica) continue;
      of_thread_[op.slice->thread].insert(*replica);
      of_process_[process_of(*op.slice)].insert(*replica);
      of_file_.insert(*replica);
    }
  }

  bool empty() const { return of_file_.empty(); }

  /// nullopt where nothing says which it is.
  std::optional<std::int32_t> find(const ChromeSlice& slice) const {
    if (const std::optional<std::int32_t> own = replica_in(slice)) return own;
    if (const auto found = of_thread_.find(slice.thread); found != of_thread_.end())
      return only_of(found->second);
    if (const auto found = of_process_.find(process_of(slice)); found != of_process_.end())
      return only_of(found->second);
    return only_of(of_file_);
  }

 private:
  static std::optional<std::int32_t> only_of(const Replicas& replicas) {
    if (replicas.size() != 1) return {};
    return *replicas.begin();
  }

  const std::string& process_of(const ChromeSlice& slice) const {
    return events_.threads[slice.thread].process;
  }

  const ChromeEvents& events_;
  std::map<std::uint32_t, Replicas> of_thread_;
  std::map<std::string, Replicas> of_process_;
  Replicas of_file_;
};

}  // namespace

std::vector<std::int32_t> find_stated_replicas(const ChromeEvents& events,
                                               const std::vector<ChromeOp>& ops,
                                               const std::string& file) {
  const StatedReplicas stated(events, ops);
  if (stated.empty()) return {};
  std::vector<std::int32_t> replicas;
  for (const ChromeOp& op : ops) {
    const std::optional<std::int32_t> replica = stated.find(*op.slice);
    if (!replica)
      throw Error(fmt::format(
          "{}: other ops state their data-parallel replica in args.dp_rank, but {} does not, and "
          "nothing else says of which it is; state it of every op",
          file, quote(op.slice->name)));
    replicas.push_back(*replica);
  }
  return replicas;
}

}  // namespace bubblescope::traces
