// Weights up, gradients down, and the optimizer between.
#include "exec/gpu/gpu_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bubblescope {

namespace {

/// To the nearest, ties to even: as the device stores it.
std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace

GpuWeights::GpuWeights(const GpuMachine& machine, const Schedule& schedule,
                       const TrainingOptions& options, BubblescopeNumber number)
    : machine_(machine), schedule_(schedule), options_(options), number_(number) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) add_stage(stage);
}

void GpuWeights::add_stage(std::int32_t at) {
  const std::int32_t stages = schedule_.stages_per_pipeline();
  const Stage made = make_stage({options_.model, at % stages, stages, options_.seed});
  const std::int32_t rank = schedule_.rank_of_stage[static_cast<std::size_t>(at)];
  const std::int32_t device = machine_.place(rank).device;
  GpuStage& stage = stages_.emplace_back();
  stage.shape = made.shape;
  stage.first = made.first;
  stage.last = made.last;
  names_.push_back(made.names);
  updates_.push_back(0);
  mean_.emplace_back();
  square_.emplace_back();
  if (!machine_.runs(rank)) return;
  for (const Matrix& values : made.weights) {
    GpuWeight weight;
    weight.master = place(device, values, kBubblescopeFloat32);
    weight.value = number_ == kBubblescopeFloat32 ? weight.master : place(device, values, number_);
    weight.grad = place(device, values, kBubblescopeFloat32);
    upload(weight, values);
    stage.weights.push_back(weight);
    if (options_.optimizer.kind != OptimizerOptions::Kind::kAdam) continue;
    const Matrix zeros(values.rows, values.columns);
    for (auto* const state : {&mean_.back(), &square_.back()}) {
      state->push_back(place(device, values, kBubblescopeFloat32));
      machine_.gpu().upload(state->back().data, zeros.values.data(),
                            static_cast<std::size_t>(zeros.bytes()));
    }
  }
}

GpuMatrix GpuWeights::place(std::int32_t device, const Matrix& shape, BubblescopeNumber number) {
  GpuMatrix matrix{nullptr, shape.rows, shape.columns, number};
  memory_.push_back(machine_.gpu().allocate(device, static_cast<std::size_t>(matrix.bytes())));
  matrix.data = memory_.back().get();
  return matrix;
}

void GpuWeights::upload(const GpuWeight& weight, const Matrix& values) {
  machine_.gpu().upload(weight.master.data, values.values.data(),
                        static_cast<std::size_t>(values.bytes()));
  if (number_ == kBubblescopeFloat32) return;
  std::vector<std::uint16_t> halves(values.values.size());
  std::transform(values.values.begin(), values.values.end(), halves.begin(), to_bfloat16);
  machine_.gpu().upload(weight.value.data, halves.data(), halves.size() * sizeof(std::uint16_t));
}

bool GpuWeights::runs(std::size_t stage) const {
  return machine_.runs(schedule_.rank_of_stage[stage]);
}

std::int32_t GpuWeights::device_of(std::size_t stage) const {
  return machine_.place(schedule_.rank_of_stage[stage]).device;
}

void GpuWeights::await() const {
  for (std::int32_t device = 0; device < machine_.device_count(); ++device)
    machine_.gpu().await_device(device);
}

void GpuWeights::clear_gradients() {
  for (std::size_t stage = 0; stage < stages_.size(); ++stage)
    for (const GpuWeight& weight : stages_[stage].weights)
      machine_.gpu().clear(weight.grad.data, static_cast<std::size_t>(weight.grad.bytes()),
                           streams_[static_cast<std::size_t>(device_of(stage))].get());
  await();
}

/// A replica's gradient is copied to a buffer on the original's device, as devices may not reach
/// into each other.
void GpuWeights::sum_replicas() {
  const auto originals = static_cast<std::size_t>(schedule_.stages_per_pipeline());
  for (std::size_t replica = originals; replica < stages_.size(); ++replica) {
    const std::size_t original = replica % originals;
    if (!runs(original) || !runs(replica)) continue;
    const GpuHandle& stream = streams_[static_cast<std::size_t>(device_of(original))];
    for (std::size_t at = 0; at < stages_[replica].weights.size(); ++at) {
      const GpuMatrix& from = stages_[replica].weights[at].grad;
      const GpuMatrix& to = stages_[original].weights[at].grad;
      const auto bytes = static_cast<std::size_t>(from.bytes());
      const GpuHandle buffer = machine_.gpu().allocate(device_of(original), bytes);
      machine_.gpu().copy(buffer.get(), from.data, bytes, stream.get());
      BubblescopeLaunch sum{};
      sum.kernel = static_cast<std::int32_t>(Kernel::kAdd);
      sum.inputs[0] = buffer.get();
      sum.extra[0] = to.data;
      sum.rows = from.rows;
      sum.columns = from.columns;
      machine_.gpu().launch(sum, stream.get());
      machine_.gpu().copy(from.data, to.data, bytes, stream.get());
      await();  // before the buffer goes
    }
  }
}

void GpuWeights::update() {
  for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage)
    update(stage,
           streams_[static_cast<std::size_t>(device_of(static_cast<std::size_t>(stage)))].get());
  await();
}

void GpuWeights::update(std::int32_t stage, void* stream) {
  const auto index = static_cast<std::size_t>(stage);
  ++updates_[index];
  for (std::size_t at = 0; at < stages_[index].weights.size(); ++at) update(index, at, stream);
}

void GpuWeights::update(std::size_t stage, std::size_t at, void* stream) {
  const GpuWeight& weight = stages_[stage].weights[at];
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(Kernel::kSgd);
  launch.number = number_;
  launch.target = number_ == kBubblescopeFloat32 ? nullptr : weight.value.data;
  launch.inputs[0] = weight.grad.data;
  launch.extra[0] = weight.master.data;
  launch.rows = weight.master.rows;
  launch.columns = weight.master.columns;
  launch.scalars[0] = options_.optimizer.learning_rate;
  if (options_.optimizer.kind == OptimizerOptions::Kind::kAdam) {
    launch.kernel = static_cast<std::int32_t>(Kernel::kAdam);
    launch.extra[1] = mean_[stage][at].data;
    launch.extra[2] = square_[stage][at].data;
    launch.scalars[1] = 1 - std::pow(kAdamMeanDecay, static_cast<float>(updates_[stage]));
    launch.scalars[2] = 1 - std::pow(kAdamSquareDecay, static_cast<float>(updates_[stage]));
  }
  machine_.gpu().launch(launch, stream);
}

Matrix GpuWeights::download(const GpuMatrix& matrix) const {
  Matrix values(matrix.rows, matrix.columns);
  machine_.gpu().download(values.values.data(), matrix.data,
                          static_cast<std::size_t>(matrix.bytes()));
  return values;
}

std::vector<Stage> GpuWeights::download_weights() const {
  std::vector<Stage> stages;
  for (std::int32_t at = 0; at < schedule_.stages_per_pipeline(); ++at) {
    const auto index = static_cast<std::size_t>(at);
    Stage& stage = stages.emplace_back();
    stage.shape = stages_[index].shape;
    stage.first = stages_[index].first;
    stage.last = stages_[index].last;
    stage.names = names_[index];
    for (const GpuWeight& weight : stages_[index].weights)
      stage.weights.push_back(download(weight.master));
  }
  return stages;
}

std::vector<std::vector<Matrix>> GpuWeights::download_gradients() const {
  std::vector<std::vector<Matrix>> gradients;
  for (std::int32_t at = 0; at < schedule_.stages_per_pipeline(); ++at) {
    gradients.emplace_back();
    for (const GpuWeight& weight : stage(at).weights)
      gradients.back().push_back(download(weight.grad));
  }
  return gradients;
}

}  // namespace bubblescope
