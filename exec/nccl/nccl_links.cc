// Finds the communicator, the peer and the buffers of every transfer.
#include "exec/nccl/nccl_links.h"

#include <algorithm>

#include "exec/runtime/step_clock.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// The size of each of the two token buffers, one for sending and one for receiving.
constexpr std::size_t kTokenBytes = 64;

std::int32_t rank_of(const Schedule& schedule, std::int32_t stage) {
  return schedule.rank_of_stage[static_cast<std::size_t>(stage)];
}

/// Returns the processes that hold a stage or share its weights, in all replicas of the pipeline.
RankGroup holders_of(const Schedule& schedule, const JobPart& part, std::int32_t stage) {
  const std::int32_t stages = schedule.stages_per_pipeline();
  RankGroup members;
  for (std::int32_t replica = 0; replica < part.replicas; ++replica)
    for (std::int32_t same = stage % stages; same < schedule.stages(); same += stages)
      for (std::int32_t holder = 0; holder < schedule.replicas(same); ++holder)
        members.push_back(part.process_of(rank_of(schedule, same) + holder, replica));
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

std::vector<RankGroup> find_groups(const Schedule& schedule, const JobPart& part,
                                   const RankPlan& plan) {
  std::vector<RankGroup> groups;
  for (std::int32_t replica = 0; replica < part.replicas; ++replica)
    for (const PlannedLink& link : plan.links)
      groups.push_back({part.process_of(std::min(link.from, link.to), replica),
                        part.process_of(std::max(link.from, link.to), replica)});
  const auto links = static_cast<std::ptrdiff_t>(groups.size());
  for (std::int32_t stage = 0; stage < schedule.stages_per_pipeline(); ++stage) {
    const RankGroup members = holders_of(schedule, part, stage);
    if (members.size() > 1 &&
        std::find(groups.begin() + links, groups.end(), members) == groups.end())
      groups.push_back(members);
  }
  return groups;
}

/// Rank 0 makes the unique id and sends it to all.
BubblescopeNcclId share_id(const NcclPlace& place, StepProtocol& protocol) {
  BubblescopeNcclId id{};
  if (place.link.self().rank == 0)
    if (const char* const error = place.nccl.get_unique_id(&id))
      throw Error(Fault::kMachine, error);
  return BlobReader(protocol.gather(blob_of(id))[0]).read<BubblescopeNcclId>();
}

}  // namespace

NcclLinks::NcclLinks(const NcclPlace& place, const GpuMachine& machine, const Schedule& schedule,
                     const RankPlan& plan, StepProtocol& protocol)
    : machine_(machine),
      schedule_(schedule),
      plan_(plan),
      protocol_(protocol),
      part_(find_part(place.link.self(), machine.ranks())),
      gathered_(part_.replicas > 1
                    ? find_gathered(schedule)
                    : std::vector<bool>(static_cast<std::size_t>(schedule.stages()), false)),
      groups_(find_groups(schedule, part_, plan)),
      tokens_(machine.gpu().allocate(0, 2 * kTokenBytes)) {
  add_gathering_groups();
  const std::vector<char> zeros(2 * kTokenBytes, 0);
  machine.gpu().upload(tokens_.get(), zeros.data(), zeros.size());
  const BubblescopeNcclId id = share_id(place, protocol);
  ranks_.emplace(
      place.nccl,
      CommunicatorConfig{place.link.self().rank, place.link.self().count, place.device, id},
      groups_, [&protocol] { protocol.watch(); });
  warm_up();
}

/// Gathers get communicators of their own: they can run ahead while sums wait for gradients, and
/// one communicator would run both in order.
void NcclLinks::add_gathering_groups() {
  stage_groups_ = groups_.size() - link_groups();
  if (std::find(gathered_.begin(), gathered_.end(), true) == gathered_.end()) return;
  groups_.reserve(groups_.size() + stage_groups_);
  for (std::size_t group = 0; group < stage_groups_; ++group)
    groups_.push_back(groups_[link_groups() + group]);
}

/// Uses every communicator once. The first transfer sets up its connection, which takes long and
/// may wait for the device, so it must not happen during a step. All ranks use the links in the
/// same order.
void NcclLinks::warm_up() {
  const GpuHandle stream = machine_.gpu().create_stream(0, nullptr);
  for (const PlannedLink& link : plan_.links)
    if (link.from == part_.rank || link.to == part_.rank) {
      const bool sends = link.from == part_.rank;
      const PlannedTransfer token{kNoInstruction, sends, sends ? link.to : link.from,
                                  link.link_kind};
      carry_one(token, group_of(token), {}, stream.get());
    }
  std::vector<PlannedTransfer> everyone;
  for (InstructionId id = 0; id < plan_.program.size(); ++id)
    if (plan_.is_group[id])
      for (PlannedTransfer transfer : plan_.transfers[id]) {
        transfer.id = kNoInstruction;
        if (std::find(everyone.begin(), everyone.end(), transfer) == everyone.end())
          everyone.push_back(transfer);
      }
  if (!everyone.empty())
    ranks_->run_as_group({}, [&] {
      for (const PlannedTransfer& transfer : everyone) carry_one(transfer, {}, {}, stream.get());
    });
  const std::int32_t here = part_.process_of(part_.rank, part_.replica);
  for (std::size_t group = link_groups(); group < groups_.size(); ++group)
    if (std::binary_search(groups_[group].begin(), groups_[group].end(), here))
      warm_up_group(group, stream.get());
  await(stream);
}

void NcclLinks::warm_up_group(std::size_t group, void* stream) {
  const NcclRanks::Buffer token{tokens_.get(), sizeof(float)};
  ranks_->sum(group, {token}, stream);
  if (groups_.size() == link_groups() + stage_groups_) return;  // no stage is gathered
  for (const std::int32_t owner : groups_[group]) {
    ranks_->sum_pieces(group, {{token, owner}}, stream);
    ranks_->gather_pieces(group, {{token, owner}}, stream);
  }
}

void NcclLinks::carry(InstructionId id, const FindBuffers& find, void* stream) {
  const std::vector<PlannedTransfer>& transfers = plan_.transfers[id];
  if (!plan_.is_group[id]) {
    for (const PlannedTransfer& transfer : transfers)
      carry_one(transfer, group_of(transfer), find, stream);
    return;
  }
  ranks_->run_as_group({}, [&] {
    for (const PlannedTransfer& transfer : transfers) carry_one(transfer, {}, find, stream);
  });
}

/// The buffers of one transfer are sent as one ncclGroup.
void NcclLinks::carry_one(const PlannedTransfer& transfer, std::optional<std::size_t> group,
                          const FindBuffers& find, void* stream) {
  std::vector<NcclRanks::Buffer> buffers;
  if (find) buffers = find(transfer);
  if (buffers.empty())
    buffers = {
        {static_cast<char*>(tokens_.get()) + (transfer.sends ? 0 : kTokenBytes), kTokenBytes}};
  const std::int32_t peer = part_.process_of(transfer.peer, part_.replica);
  const auto carry = [&] {
    for (const NcclRanks::Buffer& buffer : buffers)
      if (transfer.sends)
        ranks_->send(group, peer, buffer, stream);
      else
        ranks_->receive(group, peer, buffer, stream);
  };
  if (buffers.size() == 1) return carry();
  ranks_->run_as_group(group, carry);
}

std::optional<std::size_t> NcclLinks::group_of(const PlannedTransfer& transfer) const {
  const PlannedLink link = transfer.sends
                               ? PlannedLink{part_.rank, transfer.peer, transfer.link_kind}
                               : PlannedLink{transfer.peer, part_.rank, transfer.link_kind};
  const auto found = std::find(plan_.links.begin(), plan_.links.end(), link);
  return static_cast<std::size_t>(part_.replica) * plan_.links.size() +
         static_cast<std::size_t>(found - plan_.links.begin());
}

std::size_t NcclLinks::link_groups() const {
  return static_cast<std::size_t>(part_.replicas) * plan_.links.size();
}

std::optional<std::size_t> NcclLinks::group_of_stage(std::int32_t stage) const {
  const auto begin = groups_.begin() + static_cast<std::ptrdiff_t>(link_groups());
  const auto end = begin + static_cast<std::ptrdiff_t>(stage_groups_);
  const auto found = std::find(begin, end, holders_of(schedule_, part_, stage));
  if (found == end) return std::nullopt;
  return static_cast<std::size_t>(found - groups_.begin());
}

void NcclLinks::sum(std::int32_t stage, const std::vector<NcclRanks::Buffer>& values,
                    void* stream) {
  ranks_->sum(*group_of_stage(stage), values, stream);
}

/// The shards of every replica, one piece for each matrix and owner.
std::vector<NcclRanks::Piece> NcclLinks::pieces_of(std::int32_t stage,
                                                   const std::vector<GpuMatrix>& matrices) const {
  std::vector<NcclRanks::Piece> pieces;
  for (const GpuMatrix& matrix : matrices) {
    for (std::int32_t replica = 0; replica < part_.replicas; ++replica) {
      const Shard shard = shard_of(matrix.entries(), replica, part_.replicas);
      if (shard.count == 0) continue;
      pieces.push_back({buffer_of(matrix, shard.begin, shard.count),
                        part_.process_of(rank_of(schedule_, stage), replica)});
    }
  }
  return pieces;
}

void NcclLinks::sum_shards(std::int32_t stage, const std::vector<GpuMatrix>& matrices,
                           void* stream) {
  ranks_->sum_pieces(*group_of_stage(stage), pieces_of(stage, matrices), stream);
}

void NcclLinks::gather_shards(std::int32_t stage, const std::vector<GpuMatrix>& matrices,
                              void* stream) {
  ranks_->gather_pieces(*group_of_stage(stage) + stage_groups_, pieces_of(stage, matrices), stream);
}

/// On failure, aborts first, since the stream and the buffers that it uses are freed next.
void NcclLinks::await(const GpuHandle& stream) {
  const GpuHandle end = machine_.gpu().create_event(0, EventUse::kOrderOnly);
  machine_.gpu().record(end, stream);
  try {
    for (const PollBackoff backoff; !machine_.gpu().has_ended(end); backoff.wait()) {
      protocol_.watch();
      check();
    }
  } catch (...) {
    abort();
    throw;
  }
}

}  // namespace bubblescope::exec
