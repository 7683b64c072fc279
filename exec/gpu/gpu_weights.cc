// Weights up, gradients down, and the optimizer between.
#include "exec/gpu/gpu_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/ir/error.h"

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
    : machine_(machine),
      schedule_(schedule),
      options_(options),
      number_(number),
      uses_(weight_uses(schedule)),
      plans_(plan_versions(schedule)),
      newest_(plans_.size(), 0) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) add_stage(stage);
}

void GpuWeights::add_stage(std::int32_t at) {
  const std::int32_t stages = schedule_.stages_per_pipeline();
  const Stage made = make_stage({options_.model, at % stages, stages, options_.seed});
  GpuStage stage;
  stage.shape = made.shape;
  stage.first = made.first;
  stage.last = made.last;
  const auto versions = static_cast<std::size_t>(plans_[static_cast<std::size_t>(at)].at_once);
  versions_.emplace_back(versions, stage);
  names_.push_back(made.names);
  updates_.push_back(0);
  mean_.emplace_back();
  square_.emplace_back();
  if (machine_.runs(schedule_.rank_of_stage[static_cast<std::size_t>(at)])) add_weights(at, made);
}

/// What products read is the master itself where numbers are float32 and there is one version.
void GpuWeights::add_weights(std::int32_t at, const Stage& made) {
  const std::int32_t device = device_of(static_cast<std::size_t>(at));
  std::vector<GpuStage>& versions = versions_[static_cast<std::size_t>(at)];
  for (const Matrix& values : made.weights) {
    GpuWeight weight;
    weight.master = place(device, values, kBubblescopeFloat32);
    weight.grad = place(device, values, kBubblescopeFloat32);
    for (GpuStage& version : versions) {
      const bool apart = number_ != kBubblescopeFloat32 || versions.size() > 1;
      weight.value = apart ? place(device, values, number_) : weight.master;
      upload(weight, values);
      version.weights.push_back(weight);
    }
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
  const auto bytes = static_cast<std::size_t>(values.bytes());
  machine_.gpu().upload(weight.master.data, values.values.data(), bytes);
  if (number_ == kBubblescopeFloat32)
    return machine_.gpu().upload(weight.value.data, values.values.data(), bytes);
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

void GpuWeights::begin_step() {
  for (std::size_t stage = 0; stage < versions_.size(); ++stage) {
    const std::vector<GpuStage>& versions = versions_[stage];
    void* const stream = streams_[static_cast<std::size_t>(device_of(stage))].get();
    const auto last = static_cast<std::size_t>(plans_[stage].updates) % versions.size();
    for (std::size_t at = 0; at < versions[0].weights.size(); ++at) {
      const GpuWeight& weight = versions[0].weights[at];
      clear(weight.grad, stream);
      if (last != 0)
        machine_.gpu().copy(weight.value.data, versions[last].weights[at].value.data,
                            static_cast<std::size_t>(weight.value.bytes()), stream);
    }
    newest_[stage] = 0;
  }
  await();
}

void GpuWeights::clear(const GpuMatrix& matrix, void* stream) {
  machine_.gpu().clear(matrix.data, static_cast<std::size_t>(matrix.bytes()), stream);
}

const GpuStage& GpuWeights::read(const Op& reader) const {
  const auto stage = static_cast<std::size_t>(reader.stage);
  const auto& versions = versions_[stage];
  const std::int32_t version = uses_[stage][static_cast<std::size_t>(reader.microbatch)].read;
  const std::int32_t kept = newest_[stage] - static_cast<std::int32_t>(versions.size());
  if (version <= kept || version > newest_[stage])
    throw Error(Fault::kProblem, to_string(reader) + " reads version " + std::to_string(version) +
                                     " of the weights, which is not there at that time");
  return versions[static_cast<std::size_t>(version) % versions.size()];
}

/// The gradients of a step's last update stay, for whoever asks.
void GpuWeights::end_backward(const Op& op, void* stream) {
  const auto stage = static_cast<std::size_t>(op.stage);
  if (op.slice != 0 || !uses_[stage][static_cast<std::size_t>(op.microbatch)].written) return;
  const auto next = static_cast<std::size_t>(++newest_[stage]);
  const GpuStage& made = versions_[stage][next % versions_[stage].size()];
  ++updates_[stage];
  for (std::size_t at = 0; at < made.weights.size(); ++at) {
    update(made.weights[at], stage, at, stream);
    if (newest_[stage] < plans_[stage].updates) clear(made.weights[at].grad, stream);
  }
}

/// A replica's gradient is copied to a buffer on the original's device, as devices may not reach
/// into each other.
void GpuWeights::sum_replicas() {
  const auto originals = static_cast<std::size_t>(schedule_.stages_per_pipeline());
  for (std::size_t replica = originals; replica < versions_.size(); ++replica) {
    const std::size_t original = replica % originals;
    if (!runs(original) || !runs(replica)) continue;
    const GpuHandle& stream = streams_[static_cast<std::size_t>(device_of(original))];
    for (std::size_t at = 0; at < versions_[replica][0].weights.size(); ++at) {
      const GpuMatrix& from = versions_[replica][0].weights[at].grad;
      const GpuMatrix& to = versions_[original][0].weights[at].grad;
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
  const std::vector<GpuWeight>& weights = versions_[index][0].weights;
  ++updates_[index];
  for (std::size_t at = 0; at < weights.size(); ++at) update(weights[at], index, at, stream);
}

/// Writes the master, and the value from it.
void GpuWeights::update(const GpuWeight& weight, std::size_t stage, std::size_t at, void* stream) {
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(Kernel::kSgd);
  launch.number = number_;
  launch.target = weight.value.data == weight.master.data ? nullptr : weight.value.data;
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
    const GpuStage& here = versions_[index][0];
    stage.shape = here.shape;
    stage.first = here.first;
    stage.last = here.last;
    stage.names = names_[index];
    for (const GpuWeight& weight : here.weights) stage.weights.push_back(download(weight.master));
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
