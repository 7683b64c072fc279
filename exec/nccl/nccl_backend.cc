// Enqueues this rank's plan, and gathers what all ranks did.
#include "exec/nccl/nccl_backend.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "exec/gpu/host/timed_gpu_work.h"
#include "exec/nccl/gather_limit.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/program_digest.h"

namespace bubblescope::exec {

namespace {

/// How often the host polls NCCL for errors while it waits for the device.
constexpr Nanos kCheckEvery = 2'000'000;

/// Keeps only the faults of this rank, in the first replica. The table is made first to check that
/// every fault names a rank and an op of the Program.
BackendRequest take_own(BackendRequest request, const Program& program, const JobPart& part) {
  const InjectionTable all(request.injections, program);
  std::erase_if(request.injections, [&part](const Injection& injection) {
    return injection.rank != part.rank || part.replica != 0;
  });
  return request;
}

void expect_same_program(const Program& program, StepProtocol& protocol) {
  std::vector<std::uint64_t> all;
  for (const Blob& blob : protocol.gather(blob_of(digest_program(program))))
    all.push_back(BlobReader(blob).read<std::uint64_t>());
  const auto other =
      std::find_if(all.begin(), all.end(), [&](std::uint64_t one) { return one != all[0]; });
  if (other != all.end())
    throw Error("rank " + std::to_string(other - all.begin()) +
                " runs another program than rank 0; start all processes with the same arguments");
}

}  // namespace

JobPart find_part(const RankInfo& rank_info, std::int32_t ranks) {
  if (rank_info.count % ranks == 0)
    return {ranks, rank_info.count / ranks, rank_info.rank % ranks, rank_info.rank / ranks};
  const std::string count = std::to_string(ranks);
  throw Error("the backend nccl runs one process per rank: start " + count +
              " of them, or a multiple, as in 'torchrun --no-python --nproc-per-node " + count +
              " bubblescope ...' (there are " + std::to_string(rank_info.count) + ")");
}

NcclBackend::NcclBackend(const NcclPlace& place, const JobRequest& job, BackendRequest request)
    : place_(place),
      program_(job.program),
      part_(find_part(place.link.self(), job.program.ranks)),
      request_(take_own(std::move(request), job.program, part_)),
      plan_(plan_rank(job.program, part_.rank)),
      machine_(place.gpu, job.program.ranks, OwnRank{part_.rank, place.device}),
      protocol_(place.link, request_.limits) {
  place.link.allow_gathers(max_gather_bytes(job));
  expect_same_program(program_, protocol_);
  if (job.training != nullptr) training_.emplace(machine_, job, part_, protocol_);
  nccl_links_.emplace(place, machine_, job.schedule, plan_, protocol_);
  if (training_) training_->connect(*nccl_links_);
  step_.emplace(machine_, plan_.program, request_, make_work(job));
  await_begin();
  for (const Blob& blob : protocol_.gather(blob_of(protocol_.begin()->clock.error)))
    clock_error_ = std::max(clock_error_, BlobReader(blob).read<Nanos>());
}

std::string NcclBackend::describe() const {
  const std::string replicas = part_.replicas > 1 ? "; " + counted(part_.replicas, "copy") : "";
  return machine_.describe() + step_->describe_limits() + replicas + "; NCCL " +
         describe_version(place_.nccl) + "; clocks within " +
         std::to_string((clock_error_ + 999) / 1000) + " us" +
         (place_.launch_order.empty() ? "" : "; " + place_.launch_order);
}

GpuStepWork NcclBackend::make_work(const JobRequest& job) {
  GpuWork work;
  FindBuffers find;
  std::function<void()> begin;
  if (training_) {
    work = std::bind_front(&NcclTraining::enqueue, &*training_);
    find = std::bind_front(&NcclTraining::find, &*training_);
    begin = std::bind_front(&NcclTraining::begin_step, &*training_);
  } else {
    work = play_on_gpu(machine_, program_, job.durations, job.wait_mode);
  }
  GpuRemoteHooks remote{std::bind_front(&NcclBackend::await_begin, this),
                        std::bind_front(&NcclBackend::poll_peers, this),
                        [this] { nccl_links_->abort(); }};
  return {.enqueue = [this, work, find](InstructionId id,
                                        void* stream) { enqueue(id, work, find, stream); },
          .begin = begin,
          .loads_kernels = training_.has_value(),
          .remote = std::move(remote)};
}

/// Enqueues the work and the transfers of an instruction. If the ops only take time, the sender of
/// a message also waits for the message's duration, and the rank that evicts for that of its
/// copies.
void NcclBackend::enqueue(InstructionId id, const GpuWork& work, const FindBuffers& find,
                          void* stream) {
  const std::vector<PlannedTransfer>& transfers = plan_.transfers[id];
  if (transfers.empty()) return work(plan_.origin[id], stream);
  const bool sends =
      std::any_of(transfers.begin(), transfers.end(), [&](const PlannedTransfer& transfer) {
        return transfer.sends && is_message(program_.instructions[transfer.id]);
      });
  if (!training_ && (sends || is_own(id))) work(plan_.origin[id], stream);
  nccl_links_->carry(id, find, stream);
}

/// Returns when the step begins, at the same moment in all processes.
void NcclBackend::await_begin() {
  const std::optional<StepBegin>& begin = protocol_.agree_on_begin();
  if (!begin) throw Error(Fault::kMachine, "the step did not begin");
  StepClock clock;
  clock.start(begin->time);
  clock.wait_until(0);
}

PeerUpdate NcclBackend::poll_peers(std::size_t ended) {
  const PeerUpdate update = protocol_.exchange_heartbeats(ended);
  const Nanos now = read_monotonic_clock();
  if (update.abort_reason != AbortReason::kNone || now - checked_at_ < kCheckEvery) return update;
  checked_at_ = now;
  nccl_links_->check();
  return update;
}

std::vector<RankResult> NcclBackend::run_step() {
  protocol_.open_step();
  step_->run();
  RankPart own = translate(step_->result(part_.rank));
  if (protocol_.abort_reason() !=
      AbortReason::kNone) {  // a failure in this process is a consequence of the abort
    own.result.failure = nullptr;
    own.result.reason = protocol_.abort_reason();
  }
  std::vector<RankPart> parts = fold(protocol_.gather_parts(own));
  set_arrivals(parts, program_);
  Nanos first = 0;
  for (const RankPart& part : parts)
    for (const Span& span : part.result.spans) first = std::min(first, span.start);
  for (RankPart& part : parts)
    for (Span& span : part.result.spans) span = {span.id, span.start - first, span.end - first};
  return take_results(std::move(parts));
}

/// Reduces the parts of all processes to those of the first replica, with the failures of the
/// others.
std::vector<RankPart> NcclBackend::fold(std::vector<RankPart> parts) const {
  for (std::size_t process = static_cast<std::size_t>(part_.ranks); process < parts.size();
       ++process) {
    const RankResult& other = parts[process].result;
    RankResult& first = parts[process % static_cast<std::size_t>(part_.ranks)].result;
    if (first.reason == AbortReason::kNone) first.reason = other.reason;
    if (first.failure == nullptr) first.failure = other.failure;
  }
  parts.resize(static_cast<std::size_t>(part_.ranks));
  return parts;
}

/// Whether a planned instruction belongs to this rank's own lanes: it is neither one end of a
/// message or token, nor a copy that this rank serves as an offload target.
bool NcclBackend::is_own(InstructionId planned) const {
  const std::vector<PlannedTransfer>& transfers = plan_.transfers[planned];
  return transfers.empty() || (transfers[0].link_kind != LinkKind::kMessages &&
                               program_.instructions[plan_.origin[planned]].rank == part_.rank);
}

/// Converts times from the device's zero to the beginning of the step, and ids from the plan to the
/// whole Program.
RankPart NcclBackend::translate(RankResult result) const {
  const ZeroTime& zero = step_->zero_time();
  const Nanos shift = protocol_.begin() ? zero.earliest + (zero.latest - zero.earliest) / 2 -
                                              protocol_.begin()->time
                                        : 0;
  RankPart part;
  part.result.reason = result.reason;
  part.result.failure = result.failure;
  for (const BlockedAt& blocked : result.blocked)
    if (is_own(blocked.at)) part.result.blocked.push_back(translate(blocked));
  for (const Span& span : result.spans) {
    const Span own{plan_.origin[span.id], span.start + shift, span.end + shift};
    if (is_own(span.id)) part.result.spans.push_back(own);
    for (const PlannedTransfer& transfer : plan_.transfers[span.id]) {
      if (!is_message(program_.instructions[transfer.id])) continue;
      auto& list = transfer.sends ? part.result.spans : part.arrivals;
      list.push_back({transfer.id, own.start, own.end});
    }
  }
  return part;
}

BlockedAt NcclBackend::translate(BlockedAt blocked) const {
  blocked.at = plan_.origin[blocked.at];
  if (blocked.awaited) blocked.awaited = plan_.origin[*blocked.awaited];
  return blocked;
}

}  // namespace bubblescope::exec
