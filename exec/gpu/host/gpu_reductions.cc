// Reductions through buffers that are used in turn.
#include "exec/gpu/host/gpu_reductions.h"

#include <algorithm>

namespace bubblescope {

namespace {

/// Without flushes, a rank may post again while another still reads its previous post, so two
/// buffers are needed. Two are enough: the rank's last sum waited until all had posted, and so had
/// finished the sum before.
std::size_t count_rounds(const Schedule& schedule) { return schedule.weights.empty() ? 1 : 2; }

}  // namespace

GpuReductions::GpuReductions(const GpuMachine& machine, const Schedule& schedule,
                             const GpuWeights& weights)
    : machine_(machine), weights_(weights), handed_(weights.homes().size()) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  const Homes& homes = weights.homes();
  for (Home home = 0; home < homes.size(); ++home) {
    const std::vector<Home>& sharing = homes.sharing(home);
    const bool all_here = std::all_of(sharing.begin(), sharing.end(),
                                      [&](Home other) { return machine.runs(homes.rank(other)); });
    if (sharing.size() > 1 && all_here) add_room(home, count_rounds(schedule));
  }
}

void GpuReductions::add_room(Home home, std::size_t rounds) {
  Handed& handed = handed_[home];
  handed.rounds.resize(rounds);
  GpuMatrix largest;
  for (const GpuWeight& weight : weights_.stage(home).weights) {
    for (Gradients& round : handed.rounds) round.push_back(place(home, weight.grad));
    if (weight.grad.bytes() > largest.bytes()) largest = weight.grad;
  }
  const std::vector<Home>& sharing = weights_.homes().sharing(home);
  if (std::any_of(sharing.begin(), sharing.end(),
                  [&](Home other) { return device_of(other) != device_of(home); }))
    handed.buffer = place(home, largest);
}

GpuMatrix GpuReductions::place(Home home, GpuMatrix shape) {
  const auto bytes = static_cast<std::size_t>(shape.bytes());
  memory_.push_back(machine_.gpu().allocate(device_of(home), bytes));
  shape.data = memory_.back().get();
  return shape;
}

std::int32_t GpuReductions::device_of(Home home) const {
  return machine_.place(weights_.homes().rank(home)).device;
}

bool GpuReductions::has_several() const {
  return std::any_of(handed_.begin(), handed_.end(),
                     [](const Handed& handed) { return !handed.rounds.empty(); });
}

void GpuReductions::begin_step() {
  for (Handed& handed : handed_) handed.count = 0;
}

void GpuReductions::hand_on(Home home, void* stream) {
  if (!is_shared(home)) return;
  Handed& handed = handed_[home];
  const Gradients& to = handed.rounds[handed.count++ % handed.rounds.size()];
  for (std::size_t at = 0; at < to.size(); ++at)
    copy(to[at], weights_.stage(home).weights[at].grad, stream);
}

void GpuReductions::take_sum(Home home, void* stream) {
  if (!is_shared(home)) return;
  const Handed& own = handed_[home];
  const std::size_t round = (own.count - 1) % own.rounds.size();
  const std::vector<Home>& sharing = weights_.homes().sharing(home);
  for (std::size_t at = 0; at < own.rounds[round].size(); ++at) {
    const GpuMatrix& sum = weights_.stage(home).weights[at].grad;
    copy(sum, handed_[sharing[0]].rounds[round][at], stream);
    for (std::size_t other = 1; other < sharing.size(); ++other) {
      GpuMatrix part = handed_[sharing[other]].rounds[round][at];
      if (device_of(sharing[other]) != device_of(home)) {
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
  const auto on = [&](Home home) {
    return streams_[static_cast<std::size_t>(device_of(home))].get();
  };
  for (Home home = 0; home < handed_.size(); ++home) hand_on(home, on(home));
  await();
  for (Home home = 0; home < handed_.size(); ++home) take_sum(home, on(home));
  await();
}

void GpuReductions::copy(const GpuMatrix& to, const GpuMatrix& from, void* stream) const {
  machine_.gpu().copy(to.data, from.data, static_cast<std::size_t>(to.bytes()), stream);
}

void GpuReductions::add(const GpuMatrix& to, const GpuMatrix& part, void* stream) const {
  BubblescopeLaunch sum{};
  sum.kernel = static_cast<std::int32_t>(Kernel::kAdd);
  sum.inputs[0] = part.data;
  sum.extra[0] = to.data;
  sum.rows = to.rows;
  sum.columns = to.columns;
  machine_.gpu().launch(sum, stream);
}

void GpuReductions::await() const {
  for (std::int32_t device = 0; device < machine_.device_count(); ++device)
    machine_.gpu().await_device(device);
}

}  // namespace bubblescope
