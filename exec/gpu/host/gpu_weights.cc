// Uploads weights, downloads gradients, and runs the optimizer.
#include "exec/gpu/host/gpu_weights.h"

#include <algorithm>
#include <bit>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Converts as the device does.
std::uint16_t to_bfloat16(float value) {
  return static_cast<std::uint16_t>(
      std::bit_cast<std::uint32_t>(stored(value, Precision::kBfloat16)) >> 16);
}

/// A launch of a kernel that changes a float32 matrix.
BubblescopeLaunch launch_of(Kernel kernel, const GpuMatrix& changed) {
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(kernel);
  launch.extra[0] = changed.data;
  launch.rows = changed.rows;
  launch.columns = changed.columns;
  return launch;
}

}  // namespace

GpuWeights::GpuWeights(const GpuMachine& machine, const Schedule& schedule,
                       const TrainingOptions& options, BubblescopeDtype dtype)
    : machine_(machine),
      options_(options),
      dtype_(dtype),
      stage_replicas_(schedule),
      uses_(weight_uses(schedule)) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  const std::vector<VersionPlan> plans = plan_versions(schedule);
  const std::vector<float> scales = update_scales(schedule);
  const std::int32_t stages = schedule.stages_per_pipeline();
  for (StageReplica replica = 0; replica < stage_replicas_.size(); ++replica) {
    const std::int32_t stage = stage_replicas_.stage(replica);
    const Stage initial = make_stage({options.model, stage % stages, stages, options.seed});
    ReplicaWeights& created = replica_weights_.emplace_back();
    created.plan = plans[replica];
    created.scale = scales[static_cast<std::size_t>(stage)];
    created.names = initial.names;
    created.versions.assign(static_cast<std::size_t>(created.plan.live_versions),
                            {initial.shape, initial.first, initial.last, {}});
    if (machine.runs(stage_replicas_.rank(replica)))
      add_weights(created, device_of(replica), initial);
  }
}

/// In float32 with a single version, GEMMs read the master itself.
void GpuWeights::add_weights(ReplicaWeights& created, std::int32_t device, const Stage& initial) {
  const bool adam = options_.optimizer.kind == OptimizerOptions::Kind::kAdam;
  if (adam) created.steps = place_zeros(device, Matrix(1, 3));
  for (const Matrix& values : initial.weights) {
    GpuWeight weight;
    weight.master = place(device, values, kBubblescopeFloat32);
    weight.grad = place_zeros(device, values);
    for (GpuStage& version : created.versions) {
      const bool apart = dtype_ != kBubblescopeFloat32 || created.versions.size() > 1;
      weight.value = apart ? place(device, values, dtype_) : weight.master;
      upload(weight, values);
      version.weights.push_back(weight);
    }
    if (created.plan.leaves_gradients) created.last_grads.push_back(place_zeros(device, values));
    if (!adam) continue;
    created.mean.push_back(place_zeros(device, values));
    created.square.push_back(place_zeros(device, values));
  }
}

GpuMatrix GpuWeights::place(std::int32_t device, const Matrix& shape, BubblescopeDtype dtype) {
  GpuMatrix matrix{nullptr, shape.rows, shape.columns, dtype};
  memory_.push_back(machine_.gpu().allocate(device, static_cast<std::size_t>(matrix.bytes())));
  matrix.data = memory_.back().get();
  return matrix;
}

GpuMatrix GpuWeights::place_zeros(std::int32_t device, const Matrix& shape) {
  const GpuMatrix matrix = place(device, shape, kBubblescopeFloat32);
  const Matrix zeros(shape.rows, shape.columns);
  machine_.gpu().upload(matrix.data, zeros.values.data(), static_cast<std::size_t>(zeros.bytes()));
  return matrix;
}

void GpuWeights::upload(const GpuWeight& weight, const Matrix& values) {
  const auto bytes = static_cast<std::size_t>(values.bytes());
  machine_.gpu().upload(weight.master.data, values.values.data(), bytes);
  if (dtype_ == kBubblescopeFloat32)
    return machine_.gpu().upload(weight.value.data, values.values.data(), bytes);
  std::vector<std::uint16_t> halves(values.values.size());
  std::transform(values.values.begin(), values.values.end(), halves.begin(), to_bfloat16);
  machine_.gpu().upload(weight.value.data, halves.data(), halves.size() * sizeof(std::uint16_t));
}

std::int32_t GpuWeights::device_of(StageReplica replica) const {
  return machine_.place(stage_replicas_.rank(replica)).device;
}

/// Gradients that the previous step left for the first update stay.
void GpuWeights::begin_step() {
  for (StageReplica replica = 0; replica < replica_weights_.size(); ++replica) {
    ReplicaWeights& replica_weights = replica_weights_[replica];
    const std::vector<GpuStage>& versions = replica_weights.versions;
    void* const stream = streams_[static_cast<std::size_t>(device_of(replica))].get();
    const auto last = static_cast<std::size_t>(replica_weights.plan.updates) % versions.size();
    for (std::size_t at = 0; at < versions[0].weights.size(); ++at) {
      const GpuWeight& weight = versions[0].weights[at];
      if (!replica_weights.plan.leaves_gradients) clear(weight.grad, stream);
      if (last != 0)
        machine_.gpu().copy(weight.value.data, versions[last].weights[at].value.data,
                            static_cast<std::size_t>(weight.value.bytes()), stream);
    }
    replica_weights.newest = 0;
  }
  machine_.await();
}

void GpuWeights::clear(const GpuMatrix& matrix, void* stream) {
  machine_.gpu().clear(matrix.data, static_cast<std::size_t>(matrix.bytes()), stream);
}

const GpuStage& GpuWeights::read(const Op& reader) const {
  const ReplicaWeights& replica_weights = replica_weights_[stage_replicas_.find(reader)];
  const std::vector<GpuStage>& versions = replica_weights.versions;
  const std::int32_t version =
      uses_[static_cast<std::size_t>(reader.stage)][static_cast<std::size_t>(reader.microbatch)]
          .read;
  const std::int32_t kept = replica_weights.newest - static_cast<std::int32_t>(versions.size());
  if (version <= kept || version > replica_weights.newest)
    throw Error(Fault::kProblem, to_string(reader) + " reads version " + std::to_string(version) +
                                     " of the weights, which does not exist at that time");
  return versions[static_cast<std::size_t>(version) % versions.size()];
}

bool GpuWeights::writes(const Op& op) const {
  const auto& uses = uses_[static_cast<std::size_t>(op.stage)];
  return op.slice == 0 && uses[static_cast<std::size_t>(op.microbatch)].written.has_value();
}

void GpuWeights::update() {
  for (StageReplica replica = 0; replica < replica_weights_.size(); ++replica)
    update(replica, streams_[static_cast<std::size_t>(device_of(replica))].get());
  machine_.await();
}

void GpuWeights::update(StageReplica replica, void* stream) {
  ReplicaWeights& replica_weights = replica_weights_[replica];
  const bool makes_version = replica_weights.plan.updates > 0;
  if (makes_version) ++replica_weights.newest;
  const std::vector<GpuStage>& versions = replica_weights.versions;
  const GpuStage& created =
      versions[static_cast<std::size_t>(replica_weights.newest) % versions.size()];
  if (replica_weights.scale != 1) scale(replica_weights, stream);
  if (replica_weights.steps.data != nullptr) count_step(replica_weights.steps, stream);
  for (std::size_t at = 0; at < created.weights.size(); ++at) {
    update_one(replica_weights, created.weights[at], at, stream);
    if (makes_version) restart_gradient(replica_weights, at, stream);
  }
}

void GpuWeights::scale(const ReplicaWeights& replica_weights, void* stream) {
  for (const GpuWeight& weight : replica_weights.versions[0].weights) {
    BubblescopeLaunch launch = launch_of(Kernel::kScale, weight.grad);
    launch.scalars[0] = replica_weights.scale;
    machine_.gpu().launch(launch, stream);
  }
}

/// Counts on the device, so that the steps of a graph count too.
void GpuWeights::count_step(const GpuMatrix& steps, void* stream) {
  machine_.gpu().launch(launch_of(Kernel::kAdamStep, steps), stream);
}

/// Keeps the gradients of the last update for the result: in a copy, if more gradients follow.
void GpuWeights::restart_gradient(const ReplicaWeights& replica_weights, std::size_t at,
                                  void* stream) {
  const GpuMatrix& grad = replica_weights.versions[0].weights[at].grad;
  const bool is_last = replica_weights.newest == replica_weights.plan.updates;
  if (is_last && !replica_weights.plan.leaves_gradients) return;
  if (is_last)
    machine_.gpu().copy(replica_weights.last_grads[at].data, grad.data,
                        static_cast<std::size_t>(grad.bytes()), stream);
  clear(grad, stream);
}

/// Writes the master, and from it the value.
void GpuWeights::update_one(const ReplicaWeights& replica_weights, const GpuWeight& weight,
                            std::size_t at, void* stream) {
  const bool adam = replica_weights.steps.data != nullptr;
  BubblescopeLaunch launch = launch_of(adam ? Kernel::kAdam : Kernel::kSgd, weight.master);
  launch.dtype = dtype_;
  launch.target = weight.value.data == weight.master.data ? nullptr : weight.value.data;
  launch.inputs[0] = weight.grad.data;
  launch.scalars[0] = options_.optimizer.learning_rate;
  if (adam) {
    launch.inputs[1] = replica_weights.steps.data;
    launch.extra[1] = replica_weights.mean[at].data;
    launch.extra[2] = replica_weights.square[at].data;
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
  for (const std::vector<StageReplica>& sharing : stage_replicas_.sharing()) {
    Stage& stage = stages.emplace_back();
    const ReplicaWeights& first = replica_weights_[sharing[0]];
    const GpuStage& here = first.versions[0];
    stage.shape = here.shape;
    stage.first = here.first;
    stage.last = here.last;
    stage.names = first.names;
    for (const GpuWeight& weight : here.weights) stage.weights.push_back(download(weight.master));
  }
  return stages;
}

std::vector<std::vector<Matrix>> GpuWeights::download_gradients() const {
  std::vector<std::vector<Matrix>> gradients;
  for (const std::vector<StageReplica>& sharing : stage_replicas_.sharing()) {
    const ReplicaWeights& first = replica_weights_[sharing[0]];
    std::vector<Matrix>& of_stage = gradients.emplace_back();
    for (const GpuMatrix& gradient : first.last_grads) of_stage.push_back(download(gradient));
    if (!first.last_grads.empty()) continue;
    for (const GpuWeight& weight : first.versions[0].weights)
      of_stage.push_back(download(weight.grad));
  }
  return gradients;
}

}  // namespace bubblescope::exec
