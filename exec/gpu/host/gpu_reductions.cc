// Reductions through buffers that are used in turn.
#include "exec/gpu/host/gpu_reductions.h"

#include <algorithm>

namespace bubblescope::exec {

namespace {

/// Without flushes, a rank may post again while another still reads its previous post, so two
/// buffers are needed. Two are enough: the rank's last sum waited until all had posted, and so had
/// finished the sum before.
std::size_t count_rounds(const Schedule& schedule) { return schedule.weights.empty() ? 1 : 2; }

}  // namespace

GpuReductions::GpuReductions(const GpuMachine& machine, const Schedule& schedule,
                             const GpuWeights& weights)
    : machine_(machine), weights_(weights), posted_(weights.stage_replicas().size()) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  const StageReplicas& stage_replicas = weights.stage_replicas();
  for (StageReplica replica = 0; replica < stage_replicas.size(); ++replica) {
    const std::vector<StageReplica>& sharing = stage_replicas.sharing(replica);
    const bool all_here = std::all_of(sharing.begin(), sharing.end(), [&](StageReplica other) {
      return machine.runs(stage_replicas.rank(other));
    });
    if (sharing.size() > 1 && all_here) add_room(replica, count_rounds(schedule));
  }
}

void GpuReductions::add_room(StageReplica replica, std::size_t rounds) {
  PostedGradients& posted = posted_[replica];
  posted.rounds.resize(rounds);
  GpuMatrix largest;
  for (const GpuWeight& weight : weights_.stage(replica).weights) {
    for (Gradients& round : posted.rounds) round.push_back(place(replica, weight.grad));
    if (weight.grad.bytes() > largest.bytes()) largest = weight.grad;
  }
  const std::vector<StageReplica>& sharing = weights_.stage_replicas().sharing(replica);
  if (std::any_of(sharing.begin(), sharing.end(),
                  [&](StageReplica other) { return device_of(other) != device_of(replica); }))
    posted.buffer = place(replica, largest);
}

GpuMatrix GpuReductions::place(StageReplica replica, GpuMatrix shape) {
  const auto bytes = static_cast<std::size_t>(shape.bytes());
  memory_.push_back(machine_.gpu().allocate(device_of(replica), bytes));
  shape.data = memory_.back().get();
  return shape;
}

std::int32_t GpuReductions::device_of(StageReplica replica) const {
  return machine_.place(weights_.stage_replicas().rank(replica)).device;
}

bool GpuReductions::has_replicas() const {
  return std::any_of(posted_.begin(), posted_.end(),
                     [](const PostedGradients& posted) { return !posted.rounds.empty(); });
}

void GpuReductions::begin_step() {
  for (PostedGradients& posted : posted_) posted.count = 0;
}

void GpuReductions::post_gradients(StageReplica replica, void* stream) {
  if (!is_shared(replica)) return;
  PostedGradients& posted = posted_[replica];
  const Gradients& to = posted.rounds[posted.count++ % posted.rounds.size()];
  for (std::size_t at = 0; at < to.size(); ++at)
    copy(to[at], weights_.stage(replica).weights[at].grad, stream);
}

void GpuReductions::sum_gradients(StageReplica replica, void* stream) {
  if (!is_shared(replica)) return;
  const PostedGradients& own = posted_[replica];
  const std::size_t round = (own.count - 1) % own.rounds.size();
  const std::vector<StageReplica>& sharing = weights_.stage_replicas().sharing(replica);
  for (std::size_t at = 0; at < own.rounds[round].size(); ++at) {
    const GpuMatrix& sum = weights_.stage(replica).weights[at].grad;
    copy(sum, posted_[sharing[0]].rounds[round][at], stream);
    for (std::size_t other = 1; other < sharing.size(); ++other) {
      GpuMatrix part = posted_[sharing[other]].rounds[round][at];
      if (device_of(sharing[other]) != device_of(replica)) {
        GpuMatrix here = part;
        here.data = own.buffer.data;
        copy(here, part, stream);
        part = here;
      }
      add(sum, part, stream);
    }
  }
}

void GpuReductions::sum_all() {
  begin_step();
  const auto on = [&](StageReplica replica) {
    return streams_[static_cast<std::size_t>(device_of(replica))].get();
  };
  for (StageReplica replica = 0; replica < posted_.size(); ++replica)
    post_gradients(replica, on(replica));
  machine_.await();
  for (StageReplica replica = 0; replica < posted_.size(); ++replica)
    sum_gradients(replica, on(replica));
  machine_.await();
}

void GpuReductions::copy(const GpuMatrix& to, const GpuMatrix& from, void* stream) const {
  machine_.gpu().copy(to.data, from.data, static_cast<std::size_t>(to.bytes()), stream);
}

void GpuReductions::add(const GpuMatrix& to, const GpuMatrix& part, void* stream) const {
  machine_.gpu().launch(
      {kBubblescopeFloat32, to.rows, to.columns, AddArguments{to.floats(), part.floats()}}, stream);
}

}  // namespace bubblescope::exec
