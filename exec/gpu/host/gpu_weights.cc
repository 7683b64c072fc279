// Draws weights, downloads gradients, and runs the optimizer.
#include "exec/gpu/host/gpu_weights.h"

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// The copy of a weight's master that GEMMs read; null if they read the master.
void* copy_of(const GpuWeight& weight) {
  return weight.value.data == weight.master.data ? nullptr : weight.value.data;
}

}  // namespace

GpuWeights::GpuWeights(const GpuMachine& machine, const Schedule& schedule,
                       const TrainingOptions& options, BubblescopeDtype dtype)
    : machine_(machine),
      options_(options),
      dtype_(dtype),
      stage_replicas_(schedule),
      uses_(weight_uses(schedule)),
      memory_(machine) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  const std::vector<VersionPlan> plans = plan_versions(schedule);
  const std::vector<float> scales = update_scales(schedule);
  for (StageReplica replica = 0; replica < stage_replicas_.size(); ++replica) {
    ReplicaWeights& created = replica_weights_.emplace_back();
    created.plan = plans[replica];
    created.scale = scales[static_cast<std::size_t>(stage_replicas_.stage(replica))];
    const StagePlan plan = plan_of(schedule, options, stage_replicas_.stage(replica));
    const GpuStage stage{plan.shape, plan.stage == 0, plan.stage + 1 == plan.stages, {}};
    created.versions.assign(static_cast<std::size_t>(created.plan.live_versions), stage);
    for (const WeightOutline& outline : outline_weights(plan))
      created.names.push_back(outline.name);
    if (machine.runs(stage_replicas_.rank(replica))) add_weights(created, device_of(replica), plan);
  }
  memory_.clear();
  for (StageReplica replica = 0; replica < stage_replicas_.size(); ++replica)
    if (machine.runs(stage_replicas_.rank(replica)))
      draw(replica_weights_[replica], device_of(replica),
           plan_of(schedule, options, stage_replicas_.stage(replica)));
  machine.await();
}

void GpuWeights::add_weights(ReplicaWeights& created, std::int32_t device, const StagePlan& plan) {
  if (options_.optimizer.kind == OptimizerOptions::Kind::kAdam)
    created.steps = memory_.place(device, {nullptr, 1, 3, kBubblescopeFloat32});
  for (const WeightOutline& outline : outline_weights(plan)) add_weight(created, device, outline);
}

/// In float32 with a single version, GEMMs read the master itself.
void GpuWeights::add_weight(ReplicaWeights& created, std::int32_t device,
                            const WeightOutline& outline) {
  const GpuMatrix floats{nullptr, outline.rows, outline.columns, kBubblescopeFloat32};
  GpuMatrix numbers = floats;
  numbers.dtype = dtype_;
  GpuWeight weight;
  weight.master = memory_.place(device, floats);
  weight.grad = memory_.place(device, floats);
  for (GpuStage& version : created.versions) {
    const bool apart = dtype_ != kBubblescopeFloat32 || created.versions.size() > 1;
    weight.value = apart ? memory_.place(device, numbers) : weight.master;
    version.weights.push_back(weight);
  }
  if (created.plan.leaves_gradients) created.last_grads.push_back(memory_.place(device, floats));
  if (created.steps.data == nullptr) return;
  created.mean.push_back(memory_.place(device, floats));
  created.square.push_back(memory_.place(device, floats));
}

void GpuWeights::draw(const ReplicaWeights& created, std::int32_t device, const StagePlan& plan) {
  void* const stream = streams_[static_cast<std::size_t>(device)].get();
  const std::vector<WeightOutline> outlines = outline_weights(plan);
  for (std::size_t at = 0; at < outlines.size(); ++at) {
    const WeightDraw how = draw_of(plan, at, outlines[at]);
    for (const GpuStage& version : created.versions) {
      const GpuWeight& weight = version.weights[at];
      const bool is_gain = outlines[at].is_gain;
      launch(weight.master,
             DrawArguments{weight.master.floats(), copy_of(weight), how.key,
                           is_gain ? 0.0F : how.scale, is_gain ? 1.0F : 0.0F},
             stream);
    }
  }
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

void GpuWeights::launch(const GpuMatrix& shape, const KernelArguments& arguments,
                        void* stream) const {
  machine_.gpu().launch({dtype_, shape.rows, shape.columns, arguments}, stream);
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
    launch(weight.grad, ScaleArguments{weight.grad.floats(), replica_weights.scale}, stream);
  }
}

/// Counts on the device, so that the steps of a graph count too.
void GpuWeights::count_step(const GpuMatrix& steps, void* stream) {
  launch(steps, AdamStepArguments{steps.floats()}, stream);
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
  float* const master = weight.master.floats();
  const float* const grad = weight.grad.floats();
  const float rate = options_.optimizer.learning_rate;
  if (replica_weights.steps.data == nullptr)
    return launch(weight.master, SgdArguments{master, copy_of(weight), grad, rate}, stream);
  launch(weight.master,
         AdamArguments{master, copy_of(weight), grad, rate, replica_weights.mean[at].floats(),
                       replica_weights.square[at].floats(), replica_weights.steps.floats()},
         stream);
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
