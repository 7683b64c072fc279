// The ops of a schedule as launches.
#include "exec/gpu/gpu_training.h"

#include <algorithm>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

BubblescopeNumber number_of(Precision precision) {
  return precision == Precision::kBfloat16 ? kBubblescopeBfloat16 : kBubblescopeFloat32;
}

/// What passes between stages.
GpuMatrix between_stages(const TransformerShape& model, BubblescopeNumber number) {
  return {nullptr, model.rows(), model.width, number};
}

/// More than the host cannot train.
void expect_trainable_on_gpus(const Schedule& schedule, const TrainingOptions& options) {
  expect_trainable(schedule, options);
  if (schedule.shape.slices > 1 || !schedule.replicas_of_stage.empty())
    throw Error(schedule.name +
                " cuts sequences or shares stages, which is not trained on GPUs yet; use --backend "
                "cpu, or --work spin");
  if (!schedule.weights.empty())
    throw Error(schedule.name +
                " trains without flushes, on weights of several versions, which is not done on "
                "GPUs yet; use --backend cpu, or --work spin");
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (is_copy(op.kind))
        throw Error(to_string(op) +
                    ": activations are not moved out of a GPU yet; use --backend cpu, or --work "
                    "spin");
}

/// Whether optimizer steps run where the program has them. Replicas are summed after the step; and
/// in a graph every step would be Adam's second.
bool updates_inside(const JobRequest& job) {
  const bool alone = job.schedule.pipelines == 1;
  const bool counts_steps = job.training->optimizer.kind == OptimizerOptions::Kind::kAdam;
  return alone && !(job.device.graph && counts_steps) &&
         std::any_of(job.program.instructions.begin(), job.program.instructions.end(),
                     [](const Instruction& instruction) {
                       return instruction.op.kind == OpKind::kOptimizer;
                     });
}

[[noreturn]] void refuse(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack + " was made");
}

}  // namespace

GpuTraining::GpuTraining(const GpuMachine& machine, const JobRequest& job, GpuExchange exchange)
    : machine_(machine),
      schedule_(job.schedule),
      program_(job.program),
      options_((expect_trainable_on_gpus(job.schedule, *job.training), *job.training)),
      exchange_(std::move(exchange)),
      layers_(static_cast<std::size_t>(machine.ranks())),
      weights_(machine, job.schedule, options_, number_of(job.device.precision)),
      mail_(machine, job.schedule, between_stages(options_.model, number_of(job.device.precision))),
      states_(static_cast<std::size_t>(std::int64_t{job.schedule.stages()} *
                                       job.schedule.shape.microbatches)),
      held_(layers_.size()),
      peak_(held_.size()),
      updates_inside_(exchange_.copies == 1 && updates_inside(job)) {
  for (std::int32_t rank = 0; rank < machine.ranks(); ++rank)
    if (machine.runs(rank))
      layers_[static_cast<std::size_t>(rank)].emplace(machine, rank,
                                                      number_of(job.device.precision));
  const auto microbatches = static_cast<std::size_t>(schedule_.shape.microbatches);
  const auto rows = static_cast<std::size_t>(options_.model.rows());
  for (std::int32_t device = 0; device < machine.device_count(); ++device) {
    tokens_.push_back(
        machine.gpu().allocate(device, 2 * microbatches * rows * sizeof(std::int32_t)));
    losses_.push_back(machine.gpu().allocate(device, microbatches * sizeof(float)));
  }
  for (const RankOrder& ops : schedule_.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute) state_of(op).recompute = schedule_.recompute(op.stage);
}

void GpuTraining::begin_step() {
  const auto step = static_cast<std::int32_t>(step_losses_.size());
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch) {
    const Tokens tokens =
        make_tokens(options_, step, exchange_.copy * schedule_.shape.microbatches + microbatch);
    inputs.insert(inputs.end(), tokens.inputs.begin(), tokens.inputs.end());
    targets.insert(targets.end(), tokens.targets.begin(), tokens.targets.end());
  }
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  for (const GpuHandle& tokens : tokens_)
    machine_.gpu().upload(tokens.get(), inputs.data(), inputs.size() * sizeof(std::int32_t));
  weights_.clear_gradients();
}

void GpuTraining::enqueue(InstructionId id, void* stream) {
  const Instruction& instruction = program_.instructions[id];
  const Op& op = instruction.op;
  if (is_message(instruction)) {
    const GpuMessage message = find_message(op);
    return machine_.gpu().copy(message.to.data, message.from.data,
                               static_cast<std::size_t>(message.to.bytes()), stream);
  }
  if (instruction.role != Role::kWork) return;
  if (is_compute(op.kind)) layers_of(op).set_stream(stream);
  run(op, stream);
}

GpuMessage GpuTraining::find_message(const Op& op) const {
  const bool goes_forward = op.kind == OpKind::kSendForward;
  const Slot slot{goes_forward ? Direction::kForward : Direction::kBackward,
                  op.stage + (goes_forward ? 1 : -1), op.microbatch};
  return {mail_.outbox(slot), mail_.inbox(slot)};
}

void GpuTraining::run(const Op& op, void* stream) {
  switch (op.kind) {
    case OpKind::kForward: return compute_forward(op);
    case OpKind::kRecompute: return compute_again(op);
    case OpKind::kInputGrad: return compute_input_grad(op);
    case OpKind::kWeightGrad: return compute_weight_grad(op);
    case OpKind::kBackward: compute_input_grad(op); return compute_weight_grad(op);
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kEvict:
    case OpKind::kLoad:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kNorm:
    case OpKind::kIdle: return;
    case OpKind::kOptimizer:
      if (updates_inside_) weights_.update(op.stage, stream);
      return;
  }
}

void GpuTraining::compute_forward(const Op& op) {
  const GpuStage& stage = stage_of(op);
  MicrobatchState& state = state_of(op);
  const GpuMatrix output =
      stage.last ? GpuMatrix() : mail_.outbox({Direction::kForward, op.stage + 1, op.microbatch});
  GpuActivations saved = run_forward(layers_of(op), stage, {input_of(op), tokens_of(op), output});
  if (state.recompute == Recompute::kFull || schedule_.forward_only) {
    drop(layers_of(op), saved);
    return hold(op, schedule_.forward_only ? 0 : input_of(op).bytes());
  }
  state.complete = state.recompute == Recompute::kNone;
  if (!state.complete) drop_attention(layers_of(op), saved);
  hold(op, saved.bytes());
  state.saved = std::move(saved);
}

void GpuTraining::compute_again(const Op& op) {
  MicrobatchState& state = state_of(op);
  state.complete = true;
  if (state.recompute == Recompute::kSelective) {
    if (!state.saved) refuse(op, "its forward");
    make_attention(layers_of(op), stage_of(op), *state.saved);
    return hold(op, state.saved->bytes());
  }
  state.saved = run_forward(layers_of(op), stage_of(op), {input_of(op), tokens_of(op), {}});
  hold(op, state.saved->bytes());
}

void GpuTraining::compute_input_grad(const Op& op) {
  const GpuStage& stage = stage_of(op);
  MicrobatchState& state = state_of(op);
  if (!state.saved || !state.complete) refuse(op, "the whole of its forward");
  const GpuMatrix output_grad =
      stage.last ? GpuMatrix() : mail_.inbox({Direction::kBackward, op.stage, op.microbatch});
  const GpuMatrix input_grad =
      stage.first ? GpuMatrix() : mail_.outbox({Direction::kBackward, op.stage - 1, op.microbatch});
  const float scale = 1 / static_cast<float>(schedule_.shape.microbatches * exchange_.copies);
  state.work = run_input_grad(layers_of(op), stage,
                              {*state.saved, tokens_of(op), output_grad, input_grad, scale});
  state.saved.reset();
  hold(op, state.work->bytes());
}

void GpuTraining::compute_weight_grad(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.work) refuse(op, "its input gradient");
  run_weight_grad(layers_of(op), stage_of(op), *state.work, tokens_of(op));
  state.work.reset();
  hold(op, 0);
}

/// The micro-batch now holds so many bytes on its rank.
void GpuTraining::hold(const Op& op, Bytes bytes) {
  const std::size_t rank = rank_of(op);
  held_[rank] += bytes - std::exchange(state_of(op).held, bytes);
  peak_[rank] = std::max(peak_[rank], held_[rank]);
}

std::size_t GpuTraining::rank_of(const Op& op) const {
  return static_cast<std::size_t>(schedule_.rank_of_stage[static_cast<std::size_t>(op.stage)]);
}

GpuTraining::MicrobatchState& GpuTraining::state_of(const Op& op) {
  return states_[static_cast<std::size_t>(std::int64_t{op.stage} * schedule_.shape.microbatches +
                                          op.microbatch)];
}

GpuTokens GpuTraining::tokens_of(const Op& op) const {
  const std::int32_t device = machine_.place(static_cast<std::int32_t>(rank_of(op))).device;
  const auto* const inputs =
      static_cast<const std::int32_t*>(tokens_[static_cast<std::size_t>(device)].get());
  const std::int64_t rows = options_.model.rows();
  auto* const losses = static_cast<float*>(losses_[static_cast<std::size_t>(device)].get());
  return {inputs + op.microbatch * rows,
          inputs + (schedule_.shape.microbatches + op.microbatch) * rows, losses + op.microbatch};
}

GpuMatrix GpuTraining::input_of(const Op& op) const {
  return stage_of(op).first ? GpuMatrix()
                            : mail_.inbox({Direction::kForward, op.stage, op.microbatch});
}

void GpuTraining::finish_step() {
  double loss = 0;
  const auto stages = schedule_.stages_per_pipeline();
  for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch) {
    const std::int32_t pipeline = schedule_.pipeline_of_microbatch(microbatch);
    const Op last = forward((pipeline + 1) * stages - 1, microbatch);
    if (!machine_.runs(static_cast<std::int32_t>(rank_of(last)))) continue;
    float part = 0;
    machine_.gpu().download(&part, tokens_of(last).loss, sizeof part);
    loss += static_cast<double>(part);
  }
  if (exchange_.sum_losses) loss = exchange_.sum_losses(loss);
  step_losses_.push_back(loss / (schedule_.shape.microbatches * exchange_.copies));
  if (schedule_.forward_only) return;
  if (updates_inside_) return;
  weights_.sum_replicas();
  if (exchange_.sum_replicas) exchange_.sum_replicas();
  weights_.update();
}

TrainingResult GpuTraining::result() const {
  TrainingResult result;
  result.losses = step_losses_;
  result.stages = weights_.download_weights();
  if (!step_losses_.empty()) result.gradients = weights_.download_gradients();
  return result;
}

}  // namespace bubblescope
