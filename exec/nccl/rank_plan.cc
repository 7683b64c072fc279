// Extracts one rank's part of a Program.
#include "exec/nccl/rank_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "exec/gpu/host/stream_plan.h"
#include "exec/runtime/remote_copies.h"
#include "exec/training/program_updates.h"
#include "sim/ir/after_edges.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

bool stands_for_message(const Instruction& instruction) {
  return instruction.role != Role::kWork && is_message(instruction.op.kind);
}

/// Instructions in the order in which they are enqueued.
using Queue = std::vector<InstructionId>;

/// Finds runs: adjacent posts of messages, followed by the waits for the same messages in the same
/// order. Their messages become one group. [last post of the run] -> the posts.
std::map<InstructionId, Queue> find_runs(const Program& program) {
  std::vector<Queue> queues(program.lanes.size());
  for (InstructionId id = 0; id < program.size(); ++id)
    if (program.instructions[id].lane != kNoLane)
      queues[program.instructions[id].lane].push_back(id);
  std::map<InstructionId, Queue> runs;
  for (const Queue& queue : queues)
    for (std::size_t at = 0; at < queue.size();) {
      const auto is = [&](std::size_t place, Role role) {
        return place < queue.size() && program.instructions[queue[place]].role == role &&
               stands_for_message(program.instructions[queue[place]]);
      };
      std::size_t end = at;
      while (is(end, Role::kPost)) ++end;
      const std::size_t count = end - at;
      std::size_t same = 0;
      while (same < count && is(end + same, Role::kWait) &&
             program.instructions[queue[end + same]].op ==
                 program.instructions[queue[at + same]].op)
        ++same;
      if (count > 0 && same == count)
        runs[queue[end - 1]] = Queue(queue.begin() + static_cast<std::ptrdiff_t>(at),
                                     queue.begin() + static_cast<std::ptrdiff_t>(end));
      at = std::max(end, at + 1);
    }
  return runs;
}

/// The order of the streams, except that the sums of one reduction are adjacent, at the place of
/// the first. All of them wait for the same posts and what precedes these, so the dependencies
/// allow it. All ranks thus enqueue their sums in the same order.
std::vector<InstructionId> find_order(const Program& program, const StreamPlan& streams) {
  std::map<Queue, Queue> sums;  // [posts]: the sums that wait for them
  const auto posts = [&](InstructionId id) {
    const Instruction& at = program.instructions[id];
    const bool reduces = at.op.kind == OpKind::kReduceGrad && at.role == Role::kWork;
    return reduces ? posts_of(program, id) : Queue();
  };
  for (const InstructionId id : streams.order)
    if (const Queue awaited = posts(id); !awaited.empty()) sums[awaited].push_back(id);
  Queue order;
  for (const InstructionId id : streams.order) {
    const auto together = sums.find(posts(id));
    if (together == sums.end())
      order.push_back(id);
    else
      order.insert(order.end(), together->second.begin(), together->second.end());
    if (together != sums.end()) together->second.clear();
  }
  return order;
}

/// The parts of the plan on which all ranks must agree.
struct Wiring {
  StreamPlan streams;                               ///< gives the place of each message
  Queue order;                                      ///< all instructions
  std::map<InstructionId, Queue> runs;              ///< empty if every message is sent alone
  std::vector<std::vector<InstructionId>> of_post;  ///< per post: its messages
  std::vector<std::set<std::int32_t>> notified;     ///< per instruction: ranks that get a token
  std::vector<PlannedLink> links;
};

/// Returns the link from the rank that evicts to its offload target, or back.
PlannedLink link_of(const Instruction& copy) {
  if (copy.op.kind == OpKind::kEvict) return {copy.rank, copy.peer, LinkKind::kEvicted};
  return {copy.peer, copy.rank, LinkKind::kLoaded};
}

std::string name_link(const PlannedLink& link) {
  constexpr const char* kKinds[] = {"", " evicted", " loaded"};
  return std::to_string(link.from) + ">" + std::to_string(link.to) +
         kKinds[static_cast<std::size_t>(link.link_kind)];
}

/// Whether a dependency on another rank needs a token. Posts and waits do not, because NCCL
/// synchronizes the two ends of a message.
bool asks_for_token(const Program& program, InstructionId dependency, InstructionId id) {
  const Instruction& from = program.instructions[dependency];
  const Instruction& to = program.instructions[id];
  return from.rank != to.rank && !is_message(from) && !is_message(to) &&
         !stands_for_message(from) && !stands_for_message(to);
}

/// A group sends its messages together, after the tokens of what precedes it, but its receiver may
/// need them before: the two ends would disagree about the order.
void expect_no_token_beside_groups(const Instruction& from, const Instruction& to) {
  if (is_after_edge(to, from))
    throw Error(to_string(to) + " waits for " + to_string(from) + " of rank " +
                std::to_string(from.rank) +
                " (after edge), which NCCL cannot order beside messages in groups; use another "
                "`p2p_mode`, or `backend` mpi");
}

Wiring wire(const Program& program) {
  Wiring wiring{plan_streams(program), {}, find_runs(program), {}, {}, {}};
  wiring.order = find_order(program, wiring.streams);
  if (std::all_of(wiring.runs.begin(), wiring.runs.end(),
                  [](const auto& run) { return run.second.size() == 1; }))
    wiring.runs.clear();
  wiring.of_post.resize(program.size());
  wiring.notified.resize(program.size());
  std::set<std::tuple<std::int32_t, std::int32_t, LinkKind>> links;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_message(instruction) && wiring.runs.empty())
      links.insert({instruction.rank, instruction.peer, LinkKind::kMessages});
    if (crosses_ranks(instruction)) {
      const PlannedLink link = link_of(instruction);
      links.insert({link.from, link.to, link.link_kind});
    }
    for (const InstructionId dependency : program.dependencies_of(id)) {
      if (is_message(instruction) && stands_for_message(program.instructions[dependency]))
        wiring.of_post[dependency].push_back(id);
      if (!asks_for_token(program, dependency, id)) continue;
      if (!wiring.runs.empty())
        expect_no_token_beside_groups(program.instructions[dependency], instruction);
      wiring.notified[dependency].insert(instruction.rank);
      links.insert({program.instructions[dependency].rank, instruction.rank, LinkKind::kMessages});
    }
  }
  for (const auto& [from, to, link_kind] : links) wiring.links.push_back({from, to, link_kind});
  return wiring;
}

class RankCut {
 public:
  RankCut(const Program& program, std::int32_t rank)
      : program_(program),
        rank_(rank),
        wiring_(wire(program)),
        local_(program.size(), kNoInstruction),
        lane_(program.lanes.size(), kNoLane) {}

  RankPlan cut() && {
    plan_.program.ranks = 1;
    for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane)
      if (program_.lanes[lane].rank == rank_) lane_[lane] = add_lane(program_.lanes[lane].name);
    plan_.program.dependency_begin.push_back(0);
    for (const InstructionId id : wiring_.order) take(id);
    plan_.links = std::move(wiring_.links);
    return std::move(plan_);
  }

 private:
  std::uint32_t add_lane(std::string name) {
    plan_.program.lanes.push_back({rank_, std::move(name)});
    return static_cast<std::uint32_t>(plan_.program.lanes.size() - 1);
  }

  std::uint32_t lane_called(const std::string& name) {
    const auto known = named_.find(name);
    return known != named_.end() ? known->second : named_[name] = add_lane(name);
  }

  std::uint32_t lane_of_link(const PlannedLink& link) { return lane_called(name_link(link)); }

  void take(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    if (is_message(instruction)) {
      if (wiring_.runs.empty()) add_message(id);
      return;
    }
    if (crosses_ranks(instruction) && instruction.peer == rank_) return keep(id);
    if (instruction.rank != rank_) {
      if (wiring_.notified[id].count(rank_) != 0) add_transfer({id, false, instruction.rank});
      return;
    }
    Instruction own = instruction;
    own.lane = instruction.lane != kNoLane ? lane_[instruction.lane]
                                           : lane_of_link({instruction.rank, instruction.peer});
    local_[id] = add(own, id, program_.dependencies_of(id));
    if (crosses_ranks(instruction)) {
      const PlannedLink link = link_of(instruction);
      plan_.transfers[local_[id]] = {{id, link.from == rank_, instruction.peer, link.link_kind}};
    }
    for (const std::int32_t rank : wiring_.notified[id]) add_transfer({id, true, rank});
    if (const auto run = wiring_.runs.find(id); run != wiring_.runs.end()) add_group(run->second);
  }

  /// Adds the offload target's end of a copy. A LOAD depends on its EVICT, so activations are
  /// received before they are sent back.
  void keep(InstructionId id) {
    const Instruction& copy = program_.instructions[id];
    const PlannedLink link = link_of(copy);
    Instruction own = copy;
    own.lane = lane_of_link(link);
    own.rank = rank_;
    own.peer = copy.rank;
    local_[id] = add(own, id, program_.dependencies_of(id));
    plan_.transfers[local_[id]] = {{id, link.from == rank_, copy.rank, link.link_kind}};
  }

  void add_message(InstructionId id) {
    const Instruction& message = program_.instructions[id];
    if (message.rank == rank_) add_transfer({id, true, message.peer});
    if (message.peer == rank_) add_transfer({id, false, message.rank});
  }

  /// Adds a transfer that is sent alone.
  void add_transfer(const PlannedTransfer& transfer) {
    Instruction own = program_.instructions[transfer.id];
    const bool is_token = !is_message(own);
    own.lane = lane_of_link(transfer.sends ? PlannedLink{rank_, transfer.peer}
                                           : PlannedLink{transfer.peer, rank_});
    own.rank = rank_;
    own.peer = transfer.peer;
    const InstructionId producer[] = {transfer.id};
    const InstructionId made = add(own, transfer.id,
                                   !is_token        ? program_.dependencies_of(transfer.id)
                                   : transfer.sends ? std::span<const InstructionId>(producer)
                                                    : std::span<const InstructionId>());
    if (!transfer.sends || !is_token) local_[transfer.id] = made;
    plan_.transfers[made] = {transfer};
  }

  /// Adds a group after the last post of a run: all its messages, in the same order as at their
  /// other ends.
  void add_group(const Queue& posts) {
    std::vector<PlannedTransfer> transfers;
    std::vector<InstructionId> awaited = posts;
    for (const InstructionId post : posts)
      for (const InstructionId message : wiring_.of_post[post]) {
        const Instruction& instruction = program_.instructions[message];
        const bool sends = instruction.rank == rank_;
        transfers.push_back({message, sends, sends ? instruction.peer : instruction.rank});
        for (const InstructionId dependency : program_.dependencies_of(message))
          awaited.push_back(dependency);
      }
    std::sort(transfers.begin(), transfers.end(),
              [this](const PlannedTransfer& left, const PlannedTransfer& right) {
                return wiring_.streams.place[left.id] < wiring_.streams.place[right.id];
              });
    Instruction own = program_.instructions[transfers[0].id];
    own.lane = lane_called("group");
    own.rank = rank_;
    own.peer = transfers[0].peer;
    const InstructionId made = add(own, transfers[0].id, awaited);
    for (const PlannedTransfer& transfer : transfers) local_[transfer.id] = made;
    plan_.transfers[made] = std::move(transfers);
    plan_.is_group[made] = true;
  }

  /// Adds an instruction. Only those of its dependencies that are in this plan remain.
  InstructionId add(const Instruction& own, InstructionId origin,
                    std::span<const InstructionId> dependencies) {
    Program& program = plan_.program;
    const InstructionId made = program.size();
    program.instructions.push_back(own);
    for (const InstructionId dependency : dependencies)
      if (local_[dependency] != kNoInstruction) program.dependencies.push_back(local_[dependency]);
    program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
    plan_.origin.push_back(origin);
    plan_.transfers.emplace_back();
    plan_.is_group.push_back(false);
    return made;
  }

  const Program& program_;
  std::int32_t rank_;
  Wiring wiring_;
  std::vector<InstructionId> local_;  ///< [id in the whole Program]
  std::vector<std::uint32_t> lane_;   ///< [lane in the whole Program]
  std::map<std::string, std::uint32_t> named_;
  RankPlan plan_;
};

bool overlap(const RankGroup& left, const RankGroup& right) {
  return std::any_of(left.begin(), left.end(), [&](std::int32_t rank) {
    return std::binary_search(right.begin(), right.end(), rank);
  });
}

}  // namespace

RankPlan plan_rank(const Program& program, std::int32_t rank) {
  return RankCut(program, rank).cut();
}

std::vector<std::vector<std::size_t>> plan_splits(const std::vector<RankGroup>& groups) {
  std::vector<std::vector<std::size_t>> splits;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto free = std::find_if(splits.begin(), splits.end(), [&](const auto& split) {
      return std::none_of(split.begin(), split.end(),
                          [&](std::size_t other) { return overlap(groups[group], groups[other]); });
    });
    if (free != splits.end())
      free->push_back(group);
    else
      splits.push_back({group});
  }
  return splits;
}

}  // namespace bubblescope::exec
