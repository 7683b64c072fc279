// Uploads weights, downloads gradients, and runs the optimizer.
#include "exec/gpu/host/gpu_weights.h"

#include <algorithm>
#include <bit>

#include "sim/ir/error.h"

namespace bubblescope {

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
                       const TrainingOptions& options, BubblescopeNumber number)
    : machine_(machine),
      options_(options),
      number_(number),
      homes_(schedule),
      uses_(weight_uses(schedule)) {
  for (std::int32_t device = 0; device < machine.device_count(); ++device)
    streams_.push_back(machine.gpu().create_stream(device, nullptr));
  const std::vector<VersionPlan> plans = plan_versions(schedule);
  const std::vector<float> scales = update_scales(schedule);
  const std::int32_t stages = schedule.stages_per_pipeline();
  for (Home home = 0; home < homes_.size(); ++home) {
    const std::int32_t stage = homes_.stage(home);
    const Stage initial = make_stage({options.model, stage % stages, stages, options.seed});
    AtHome& made = at_home_.emplace_back();
    made.plan = plans[home];
    made.scale = scales[static_cast<std::size_t>(stage)];
    made.names = initial.names;
    made.versions.assign(static_cast<std::size_t>(made.plan.at_once),
                         {initial.shape, initial.first, initial.last, {}});
    if (machine.runs(homes_.rank(home))) add_weights(made, device_of(home), initial);
  }
}

/// In float32 with a single version, GEMMs read the master itself.
void GpuWeights::add_weights(AtHome& made, std::int32_t device, const Stage& initial) {
  const bool adam = options_.optimizer.kind == OptimizerOptions::Kind::kAdam;
  if (adam) made.steps = place_zeros(device, Matrix(1, 3));
  for (const Matrix& values : initial.weights) {
    GpuWeight weight;
    weight.master = place(device, values, kBubblescopeFloat32);
    weight.grad = place_zeros(device, values);
    for (GpuStage& version : made.versions) {
      const bool apart = number_ != kBubblescopeFloat32 || made.versions.size() > 1;
      weight.value = apart ? place(device, values, number_) : weight.master;
      upload(weight, values);
      version.weights.push_back(weight);
    }
    if (made.plan.leaves_gradients) made.last_grads.push_back(place_zeros(device, values));
    if (!adam) continue;
    made.mean.push_back(place_zeros(device, values));
    made.square.push_back(place_zeros(device, values));
  }
}

GpuMatrix GpuWeights::place(std::int32_t device, const Matrix& shape, BubblescopeNumber number) {
  GpuMatrix matrix{nullptr, shape.rows, shape.columns, number};
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
  if (number_ == kBubblescopeFloat32)
    return machine_.gpu().upload(weight.value.data, values.values.data(), bytes);
  std::vector<std::uint16_t> halves(values.values.size());
  std::transform(values.values.begin(), values.values.end(), halves.begin(), to_bfloat16);
  machine_.gpu().upload(weight.value.data, halves.data(), halves.size() * sizeof(std::uint16_t));
}

std::int32_t GpuWeights::device_of(Home home) const {
  return machine_.place(homes_.rank(home)).device;
}

void GpuWeights::await() const {
  for (std::int32_t device = 0; device < machine_.device_count(); ++device)
    machine_.gpu().await_device(device);
}

/// Gradients that the previous step left for the first update stay.
void GpuWeights::begin_step() {
  for (Home home = 0; home < at_home_.size(); ++home) {
    AtHome& at_home = at_home_[home];
    const std::vector<GpuStage>& versions = at_home.versions;
    void* const stream = streams_[static_cast<std::size_t>(device_of(home))].get();
    const auto last = static_cast<std::size_t>(at_home.plan.updates) % versions.size();
    for (std::size_t at = 0; at < versions[0].weights.size(); ++at) {
      const GpuWeight& weight = versions[0].weights[at];
      if (!at_home.plan.leaves_gradients) clear(weight.grad, stream);
      if (last != 0)
        machine_.gpu().copy(weight.value.data, versions[last].weights[at].value.data,
                            static_cast<std::size_t>(weight.value.bytes()), stream);
    }
    at_home.newest = 0;
  }
  await();
}

void GpuWeights::clear(const GpuMatrix& matrix, void* stream) {
  machine_.gpu().clear(matrix.data, static_cast<std::size_t>(matrix.bytes()), stream);
}

const GpuStage& GpuWeights::read(const Op& reader) const {
  const AtHome& at_home = at_home_[homes_.find(reader)];
  const std::vector<GpuStage>& versions = at_home.versions;
  const std::int32_t version =
      uses_[static_cast<std::size_t>(reader.stage)][static_cast<std::size_t>(reader.microbatch)]
          .read;
  const std::int32_t kept = at_home.newest - static_cast<std::int32_t>(versions.size());
  if (version <= kept || version > at_home.newest)
    throw Error(Fault::kProblem, to_string(reader) + " reads version " + std::to_string(version) +
                                     " of the weights, which is not there at that time");
  return versions[static_cast<std::size_t>(version) % versions.size()];
}

bool GpuWeights::writes(const Op& op) const {
  const auto& uses = uses_[static_cast<std::size_t>(op.stage)];
  return op.slice == 0 && uses[static_cast<std::size_t>(op.microbatch)].written.has_value();
}

void GpuWeights::update() {
  for (Home home = 0; home < at_home_.size(); ++home)
    update(home, streams_[static_cast<std::size_t>(device_of(home))].get());
  await();
}

void GpuWeights::update(Home home, void* stream) {
  AtHome& at_home = at_home_[home];
  const bool makes_version = at_home.plan.updates > 0;
  if (makes_version) ++at_home.newest;
  const std::vector<GpuStage>& versions = at_home.versions;
  const GpuStage& made = versions[static_cast<std::size_t>(at_home.newest) % versions.size()];
  if (at_home.scale != 1) scale(at_home, stream);
  if (at_home.steps.data != nullptr) count_step(at_home.steps, stream);
  for (std::size_t at = 0; at < made.weights.size(); ++at) {
    update_one(at_home, made.weights[at], at, stream);
    if (makes_version) restart_gradient(at_home, at, stream);
  }
}

void GpuWeights::scale(const AtHome& at_home, void* stream) {
  for (const GpuWeight& weight : at_home.versions[0].weights) {
    BubblescopeLaunch launch = launch_of(Kernel::kScale, weight.grad);
    launch.scalars[0] = at_home.scale;
    machine_.gpu().launch(launch, stream);
  }
}

/// Counts on the device, so that the steps of a graph count too.
void GpuWeights::count_step(const GpuMatrix& steps, void* stream) {
  machine_.gpu().launch(launch_of(Kernel::kAdamStep, steps), stream);
}

/// Keeps the gradients of the last update for the result: in a copy, if more gradients follow.
void GpuWeights::restart_gradient(const AtHome& at_home, std::size_t at, void* stream) {
  const GpuMatrix& grad = at_home.versions[0].weights[at].grad;
  const bool is_last = at_home.newest == at_home.plan.updates;
  if (is_last && !at_home.plan.leaves_gradients) return;
  if (is_last)
    machine_.gpu().copy(at_home.last_grads[at].data, grad.data,
                        static_cast<std::size_t>(grad.bytes()), stream);
  clear(grad, stream);
}

/// Writes the master, and from it the value.
void GpuWeights::update_one(const AtHome& at_home, const GpuWeight& weight, std::size_t at,
                            void* stream) {
  const bool adam = at_home.steps.data != nullptr;
  BubblescopeLaunch launch = launch_of(adam ? Kernel::kAdam : Kernel::kSgd, weight.master);
  launch.number = number_;
  launch.target = weight.value.data == weight.master.data ? nullptr : weight.value.data;
  launch.inputs[0] = weight.grad.data;
  launch.scalars[0] = options_.optimizer.learning_rate;
  if (adam) {
    launch.inputs[1] = at_home.steps.data;
    launch.extra[1] = at_home.mean[at].data;
    launch.extra[2] = at_home.square[at].data;
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
  for (const std::vector<Home>& sharing : homes_.sharing()) {
    Stage& stage = stages.emplace_back();
    const AtHome& first = at_home_[sharing[0]];
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
  for (const std::vector<Home>& sharing : homes_.sharing()) {
    const AtHome& first = at_home_[sharing[0]];
    std::vector<Matrix>& of_stage = gradients.emplace_back();
    for (const GpuMatrix& gradient : first.last_grads) of_stage.push_back(download(gradient));
    if (!first.last_grads.empty()) continue;
    for (const GpuWeight& weight : first.versions[0].weights)
      of_stage.push_back(download(weight.grad));
  }
  return gradients;
}

}  // namespace bubblescope
