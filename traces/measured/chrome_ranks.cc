// Compares the arguments, threads and processes of ops.
#include "traces/measured/chrome_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/shape.h"
#include "traces/measured/chrome_peers.h"
#include "traces/measured/chrome_processes.h"
#include "traces/measured/chrome_threads.h"

namespace bubblescope::traces {

namespace {

/// The argument that states a rank: of the pipeline (args.pp_rank), or of the job (args.rank).
enum class RankArgument : std::uint8_t { kOfPipeline, kOfJob };

std::optional<std::int64_t> find_argument(const ChromeSlice& slice, RankArgument argument) {
  if (argument == RankArgument::kOfJob) return slice.rank;
  // Where an op states its chunk as well, args.stage is the number of its rank.
  return slice.pp_rank || !slice.chunk ? slice.pp_rank : slice.stage;
}

/// Whether all ops state their rank in this way.
bool have_arguments(const std::vector<ChromeOp>& ops, RankArgument argument) {
  return std::all_of(ops.begin(), ops.end(), [&](const ChromeOp& op) {
    const std::optional<std::int64_t> rank = find_argument(*op.slice, argument);
    return rank && *rank >= 0 && *rank < kMaxRanks;
  });
}

template <class Key, class Value>
std::vector<Value> list_values(const std::map<Key, Value>& map) {
  std::vector<Value> values;
  for (const auto& [_, value] : map) values.push_back(value);
  return values;
}

/// Counts the recorders of every rank, those of one number in their tensor-parallel groups, in the
/// order of their processes.
ChromeRanks count_pipelines(ChromeRanks ranks, const ChromeEvents& events,
                            const std::map<PeerPlace, std::vector<std::int32_t>>& recorders) {
  std::set<std::string> pids;
  for (const auto& [place, _] : recorders) pids.insert(place.second);
  const std::map<std::string, ProcessRank> numbers = rank_processes(events, pids);
  using Place = std::tuple<std::int64_t, std::int32_t, std::string>;  // rank, number and process
  std::map<Place, std::vector<std::int32_t>> ordered;
  for (const auto& [place, own] : recorders)
    ordered[{place.first, numbers.at(place.second).rank.value_or(0), place.second}] = own;
  ranks.replica_of.resize(ranks.recorders.size());
  std::map<std::pair<std::int64_t, std::int32_t>, std::int32_t> replicas;  // by rank and number
  for (const auto& [place, own] : ordered)
    for (const std::int32_t recorder : own) {
      const auto at = static_cast<std::size_t>(recorder);
      const std::int32_t tensor = ranks.recorders[at].tensor.value_or(0);
      ranks.replica_of[at] = replicas[{std::get<0>(place), tensor}]++;
    }
  return ranks;
}

/// Ranks ops by the ranks in their arguments. Processes with the same rank of a pipeline are
/// replicas. So are peers within one process, except tensor-parallel ones.
ChromeRanks rank_by_arguments(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::string& file, RankArgument argument) {
  const bool of_pipeline = argument == RankArgument::kOfPipeline;
  std::vector<PeerPlace> places;
  for (const ChromeOp& op : ops)
    places.emplace_back(*find_argument(*op.slice, argument),
                        of_pipeline ? events.threads[op.slice->thread].process : std::string());
  const std::vector<Peer> peers =
      of_pipeline ? find_peers(ops, places) : std::vector<Peer>(ops.size());
  ChromeRanks ranks;
  std::map<std::pair<PeerPlace, Peer>, std::int32_t> recorders;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const auto [found, is_new] = recorders.emplace(
        std::pair(places[at], peers[at]), static_cast<std::int32_t>(ranks.recorders.size()));
    ranks.recorder_of.push_back(found->second);
    if (is_new) ranks.recorders.push_back({file, static_cast<std::int32_t>(places[at].first)});
  }
  std::map<PeerPlace, std::vector<std::int32_t>> of_places;
  for (const auto& [key, recorder] : recorders) of_places[key.first].push_back(recorder);
  ranks = number_tensor_peers(std::move(ranks), ops, list_values(of_places));
  return count_pipelines(std::move(ranks), events, of_places);
}

/// Every process is a rank.
ChromeRanks rank_by_processes(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::string& file) {
  std::set<std::string> pids;
  for (const ChromeOp& op : ops) pids.insert(events.threads[op.slice->thread].process);
  const std::map<std::string, ProcessRank> numbers = rank_processes(events, pids);
  ChromeRanks ranks;
  std::map<std::string, std::int32_t> recorders;
  for (const ChromeOp& op : ops) {
    const std::string& pid = events.threads[op.slice->thread].process;
    const auto [found, is_new] =
        recorders.emplace(pid, static_cast<std::int32_t>(ranks.recorders.size()));
    ranks.recorder_of.push_back(found->second);
    if (!is_new) continue;
    const ProcessRank& number = numbers.at(pid);
    Recorder& recorder = ranks.recorders.emplace_back();
    recorder.where = file;
    recorder.rank = number.rank;
    recorder.is_process = !number.is_stated;
    recorder.is_device = number.is_device;
  }
  ranks.replica_of.resize(ranks.recorders.size());
  return ranks;
}

/// Ranks the ops of one pipeline, or of processes that are replicas.
ChromeRanks rank_ops(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                     const std::string& file) {
  for (const RankArgument argument : {RankArgument::kOfPipeline, RankArgument::kOfJob})
    if (have_arguments(ops, argument)) return rank_by_arguments(events, ops, file, argument);
  std::optional<ChromeRanks> ranks = rank_by_threads(events, ops, file);
  if (!ranks) ranks = rank_by_processes(events, ops, file);
  return number_tensor_peers(*std::move(ranks), ops, {});
}

/// The ranks of a replica, and which ops are its own.
struct RankedReplica {
  ChromeRanks ranks;
  std::vector<std::size_t> ops;
};

std::map<std::int32_t, RankedReplica> rank_replicas(const ChromeEvents& events,
                                                    const std::vector<ChromeOp>& ops,
                                                    const std::vector<std::int32_t>& replicas,
                                                    const std::string& file) {
  std::map<std::int32_t, RankedReplica> ranked;
  for (std::size_t at = 0; at < ops.size(); ++at) ranked[replicas[at]].ops.push_back(at);
  for (auto& [_, replica] : ranked) {
    std::vector<ChromeOp> own;
    for (const std::size_t at : replica.ops) own.push_back(ops[at]);
    replica.ranks = rank_ops(events, own, file);
    const bool are_places = have_arguments(own, RankArgument::kOfPipeline);
    for (Recorder& recorder : replica.ranks.recorders) {
      recorder.has_replica = true;
      recorder.may_count_job = !are_places;
    }
  }
  return ranked;
}

/// Joins the recorders of all replicas. Where several peers have the same rank of one, these are
/// counted as replicas as well.
ChromeRanks join_replicas(std::map<std::int32_t, RankedReplica> ranked, std::size_t ops,
                          const std::string& file) {
  std::int32_t peers = 1;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers;  // by replica and peer
  for (const auto& [number, replica] : ranked)
    for (const std::int32_t peer : replica.ranks.replica_of) {
      peers = std::max(peers, peer + 1);
      numbers.emplace(std::pair(number, peer), number);
    }
  std::int32_t next = 0;
  if (peers > 1)
    for (auto& [_, number] : numbers) number = next++;
  ChromeRanks joined;
  joined.recorder_of.resize(ops);
  const auto move_all = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  for (auto& [number, replica] : ranked) {
    ChromeRanks& own = replica.ranks;
    const auto first = static_cast<std::int32_t>(joined.recorders.size());
    for (std::size_t at = 0; at < replica.ops.size(); ++at)
      joined.recorder_of[replica.ops[at]] = first + own.recorder_of[at];
    for (const std::int32_t peer : own.replica_of)
      joined.replica_of.push_back(numbers.at({number, peer}));
    move_all(joined.recorders, own.recorders);
    move_all(joined.remarks.notes, own.remarks.notes);
    move_all(joined.remarks.doubts, own.remarks.doubts);
  }
  if (peers > 1)
    joined.remarks.doubts.push_back(fmt::format(
        "{}: up to {} ranks state the same rank of the pipeline and the same args.dp_rank: each "
        "counts as a replica of its own",
        file, peers));
  return joined;
}

}  // namespace

ChromeRanks find_chrome_ranks(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::vector<std::int32_t>& replicas, const std::string& file) {
  if (replicas.empty()) return rank_ops(events, ops, file);
  return join_replicas(rank_replicas(events, ops, replicas, file), ops.size(), file);
}

}  // namespace bubblescope::traces
