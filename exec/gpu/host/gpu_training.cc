// Runs the ops of a schedule as GPU launches.
#include "exec/gpu/host/gpu_training.h"

#include <algorithm>
#include <utility>

#include "exec/training/expect_trainable.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// GPUs have more limits than the host.
void expect_trainable_on_gpus(const JobRequest& job, std::int32_t copies) {
  const ValidSchedule& schedule = job.schedule;
  expect_trainable(schedule, *job.training);
  if (!schedule->graph.is_chain())
    throw Error("the stages of " + schedule->name +
                " are a graph, which is trained on the backends cpu and mpi; use one of them, or "
                "`work` sleep");
  const TransformerShape& model = job.training->model;
  if (job.device.attention == Attention::kFlash && model.width / model.heads > kMaxHeadWidth)
    throw Error("`attention` flash: heads are " + std::to_string(model.width / model.heads) +
                " wide, more than " + std::to_string(kMaxHeadWidth) +
                "; use more `num_attention_heads`, or `attention` softmax");
  if (!schedule->weights.empty() && copies > 1)
    throw Error(schedule->name +
                " updates without flushes, but copies of the pipeline sum their gradients after "
                "a step: start as many processes as ranks");
}

/// With several processes, NCCL reduces the gradients: after the step for copies of the pipeline,
/// whose updates then follow the step, as they do where a process has several replicas of a stage.
ProgramUpdates find_in_program(const JobRequest& job, const GpuExchange& exchange,
                               bool has_replicas) {
  const ProgramUpdates in_program = find_program_updates(job.schedule, job.program);
  if (!exchange.sum_replicas) return in_program;
  return {false, in_program.updates && exchange.copies == 1 && !has_replicas};
}

LayerOptions layer_options_of(const DeviceOptions& device) {
  const bool is_float32 = device.precision == Precision::kFloat32;  // rounds like the host
  return {dtype_of(device.precision), device.attention, SmHint::kMultiprocessors,
          device.epilogue.value_or(is_float32 ? Epilogue::kSeparate : Epilogue::kFused)};
}

[[noreturn]] void refuse(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack + " is ready");
}

}  // namespace

GpuTraining::GpuTraining(const GpuMachine& machine, const JobRequest& job, GpuExchange exchange)
    : machine_(machine),
      schedule_(job.schedule),
      program_(job.program),
      options_((expect_trainable_on_gpus(job, exchange.copies), *job.training)),
      exchange_(std::move(exchange)),
      dtype_(dtype_of(job.device.precision)),
      layers_(static_cast<std::size_t>(machine.ranks())),
      weights_(machine, job.schedule, options_, dtype_),
      reductions_(machine, job.schedule, weights_),
      mailbox_(machine, job.schedule, options_.model, dtype_),
      data_(machine, job.schedule, options_),
      evictions_(machine, job),
      states_(static_cast<std::size_t>(std::int64_t{job.schedule->stages()} *
                                       job.schedule->shape.microbatches *
                                       job.schedule->shape.slices)),
      contexts_(job.schedule),
      held_(job.program.size(), machine.ranks()),
      pools_(held_),
      gradient_scale_(gradient_scale(job.schedule)),
      in_program_(find_in_program(job, exchange_, reductions_.has_replicas())) {
  if (!schedule_.offload_target_of_rank.empty()) order_.emplace(program_);
  for (std::int32_t rank = 0; rank < machine.ranks(); ++rank) {
    if (!machine.runs(rank)) continue;
    auto& layers = layers_[static_cast<std::size_t>(rank)].emplace(machine, rank,
                                                                   layer_options_of(job.device));
    if (order_) layers.pool().set_order(*order_);
  }
  if (order_) evictions_.set_order(*order_);
  for (const RankOrder& ops : schedule_.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute) state_of(op).recompute = schedule_.recompute(op.stage);
}

void GpuTraining::begin_step() {
  data_.upload(static_cast<std::int32_t>(step_losses_.size()), exchange_.copy);
  weights_.begin_step();
  reductions_.begin_step();
  evictions_.forget_users();
  for (std::optional<GpuLayers>& layers : layers_)
    if (layers) layers->pool().forget_users();
}

void GpuTraining::enqueue(InstructionId id, void* stream) {
  const Instruction& instruction = program_.instructions[id];
  const Op& op = instruction.op;
  if (is_message(instruction)) {
    const GpuMessage message = find_message(op);
    return machine_.gpu().copy(message.to.data, message.from.data,
                               static_cast<std::size_t>(message.to.bytes()), stream);
  }
  if (op.kind == OpKind::kReduceGrad) return reduce(instruction, stream);
  if (instruction.role != Role::kWork) return;
  if (is_compute(op.kind)) layers_of(op).set_stream(stream);
  record_pool_use(id, [&] { run(id, stream); });
}

/// Records what an instruction allocates and frees, and its peak.
void GpuTraining::record_pool_use(InstructionId id, const std::function<void()>& run) {
  enqueued_ = id;
  held_.begin(id);
  const std::int32_t rank = program_.instructions[id].rank;
  ActivationPool& pool = layers_[static_cast<std::size_t>(rank)]->pool();
  pool.set_user(id);
  pool.reset_peak();
  const Bytes before = pool.held();
  run();
  pools_.begin(id);
  pools_.change(id, rank, pool.held() - before, pool.peak() - before);
}

GpuBuffers GpuTraining::find_copy_buffers(InstructionId id) {
  const Instruction& copy = program_.instructions[id];
  const bool evicts = copy.op.kind == OpKind::kEvict;
  if (!machine_.runs(copy.rank)) {
    held_.begin(id);
    return evicts ? acquire_offloaded(id, evictions_.expected(copy.op)) : release_offloaded(id);
  }
  GpuBuffers buffers;
  record_pool_use(id, [&] { buffers = evicts ? release_evicted(copy) : acquire_loaded(copy); });
  return buffers;
}

void GpuTraining::run(InstructionId id, void* stream) {
  const Instruction& instruction = program_.instructions[id];
  const Op& op = instruction.op;
  switch (op.kind) {
    case OpKind::kForward: return compute_forward(op);
    case OpKind::kRecompute: return recompute_forward(op);
    case OpKind::kInputGrad: return compute_input_grad(op);
    case OpKind::kWeightGrad: return compute_weight_grad(op, stream);
    case OpKind::kBackward: compute_input_grad(op); return compute_weight_grad(op, stream);
    case OpKind::kEvict: {
      const GpuBuffers from = release_evicted(instruction);
      return evictions_.copy(acquire_offloaded(id, from), from, stream);
    }
    case OpKind::kLoad:
      return evictions_.copy(acquire_loaded(instruction), release_offloaded(id), stream);
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kNorm:
    case OpKind::kWaitReduceGrad:
    case OpKind::kIdle: return;
    case OpKind::kOptimizer:
      if (in_program_.updates) weights_.update(replica_of(instruction), stream);
      return;
  }
}

/// A post publishes this rank's gradients, the work adds them up, and a join only waits.
void GpuTraining::reduce(const Instruction& reduction, void* stream) {
  if (!in_program_.reduces || reduction.lane == kNoLane) return;
  if (reduction.role == Role::kPost)
    return reductions_.post_gradients(replica_of(reduction), stream);
  reductions_.sum_gradients(replica_of(reduction), stream);
}

void GpuTraining::compute_forward(const Op& op) {
  const GpuStage& stage = weights_.read(op);
  GpuMicrobatch& state = state_of(op);
  const Slot next{Direction::kForward, op.stage + 1, op.microbatch, op.slice};
  const GpuMatrix output = stage.last ? GpuMatrix() : mailbox_.outbox(next);
  const bool is_kept = !schedule_.forward_only && state.recompute != Recompute::kFull;
  GpuActivations saved = run_forward(
      layers_of(op), stage, {input_of(op), data_.tokens_of(op), output, context_of(op), is_kept});
  state.is_here = true;
  state.complete = state.recompute == Recompute::kNone;
  if (schedule_.forward_only) {
    drop(layers_of(op), std::move(saved));
    return contexts_.free_if_unneeded(op, schedule_.shape.slices - 1, layers_of(op));
  }
  if (state.recompute == Recompute::kFull) {
    drop(layers_of(op), std::move(saved));
    state.input = input_of(op);
    return set_held(op, state.input.bytes() + context_bytes(op));
  }
  if (!state.complete) drop_attention(layers_of(op), saved);
  set_held(op, saved.bytes() + context_bytes(op));
  state.saved = std::move(saved);
}

void GpuTraining::recompute_forward(const Op& op) {
  GpuMicrobatch& state = state_of(op);
  if (!state.is_here) refuse(op, "its input");
  const GpuStage& stage = weights_.read(op);
  state.complete = true;
  if (state.recompute == Recompute::kSelective)
    make_attention(layers_of(op), stage, *state.saved, data_.tokens_of(op).positions,
                   context_of(op));
  else
    state.saved =
        run_forward(layers_of(op), stage, {input_of(op), data_.tokens_of(op), {}, context_of(op)});
  set_held(op, state.saved->bytes() + context_bytes(op));
}

void GpuTraining::compute_input_grad(const Op& op) {
  const GpuStage& stage = weights_.read(op);
  GpuMicrobatch& state = state_of(op);
  if (!state.saved || !state.complete || !state.is_here)
    refuse(op, "the complete result of its forward");
  const auto slot = [&](std::int32_t reader) {
    return Slot{Direction::kBackward, reader, op.microbatch, op.slice};
  };
  const GpuMatrix output_grad = stage.last ? GpuMatrix() : mailbox_.inbox(slot(op.stage));
  const GpuMatrix input_grad = stage.first ? GpuMatrix() : mailbox_.outbox(slot(op.stage - 1));
  const float scale = gradient_scale_ / static_cast<float>(exchange_.copies);
  state.work = run_input_grad(
      layers_of(op), stage,
      {*state.saved, data_.tokens_of(op), output_grad, input_grad, scale, context_of(op)});
  state.saved.reset();
  contexts_.free_if_unneeded(op, 0, layers_of(op));
  set_held(op, state.work->bytes());
}

void GpuTraining::compute_weight_grad(const Op& op, void* stream) {
  GpuMicrobatch& state = state_of(op);
  if (!state.work) refuse(op, "its input gradient");
  const StageReplica replica = weights_.stage_replicas().find(op);
  run_weight_grad(layers_of(op), weights_.stage(replica), *state.work, data_.tokens_of(op));
  state.work.reset();
  set_held(op, 0);
  if (weights_.writes(op) && !in_program_.updates) weights_.update(replica, stream);
}

/// The memory that an EVICT copies away.
GpuBuffers GpuTraining::release_evicted(const Instruction& evict) {
  GpuMicrobatch& state = state_of(evict.op);
  if (!std::exchange(state.is_here, false)) refuse(evict.op, "the result of its forward");
  GpuBuffers left = release_for_evict(layers_of(evict.op).pool(), state.kept());
  set_held(evict.op, context_bytes(evict.op));
  return left;
}

/// The memory to which a LOAD copies back.
GpuBuffers GpuTraining::acquire_loaded(const Instruction& load) {
  GpuMicrobatch& state = state_of(load.op);
  if (std::exchange(state.is_here, true)) refuse(load.op, "its evicted copy");
  GpuBuffers room = acquire_for_load(layers_of(load.op).pool(), state.kept());
  set_held(load.op, bytes_of(room) + context_bytes(load.op));
  return room;
}

/// Offloaded activations count on the rank that holds them; in host memory they do not count.
GpuBuffers GpuTraining::acquire_offloaded(InstructionId id, const GpuBuffers& sizes) {
  const Instruction& evict = program_.instructions[id];
  if (evict.peer != evict.rank) held_.change(id, evict.peer, bytes_of(sizes));
  return evictions_.acquire_offloaded(id, evict, sizes);
}

GpuBuffers GpuTraining::release_offloaded(InstructionId id) {
  const Instruction& load = program_.instructions[id];
  GpuBuffers kept = evictions_.release_offloaded(id, load);
  if (load.peer != load.rank) held_.change(id, load.peer, -bytes_of(kept));
  return kept;
}

/// Sets the bytes that the micro-batch holds on its rank.
void GpuTraining::set_held(const Op& op, Bytes bytes) {
  held_.change(enqueued_, static_cast<std::int32_t>(rank_of(op)),
               bytes - std::exchange(state_of(op).held, bytes));
}

std::size_t GpuTraining::rank_of(const Op& op) const {
  return static_cast<std::size_t>(schedule_.rank_of(op.stage, op.microbatch));
}

GpuMicrobatch& GpuTraining::state_of(const Op& op) {
  const std::int64_t forwards = std::int64_t{schedule_.shape.microbatches} * schedule_.shape.slices;
  return states_[static_cast<std::size_t>(op.stage * forwards + schedule_.forward_index(op))];
}

GpuMatrix GpuTraining::input_of(const Op& op) const {
  if (schedule_.is_first(op.stage)) return {};
  return mailbox_.inbox({Direction::kForward, op.stage, op.microbatch, op.slice});
}

/// A slice's own share of the context, which counts with the slice.
Bytes GpuTraining::context_bytes(const Op& op) const {
  const Bytes floats =
      bubblescope::exec::context_bytes(options_.model, schedule_.shape.slices, op.slice);
  return floats / entry_bytes(kBubblescopeFloat32) * entry_bytes(dtype_);
}

void GpuTraining::finish_step(const MemoryTracker::Times& times) {
  held_.note_step(times);
  pools_.note_step(times);
  double loss = data_.sum_losses();
  if (exchange_.sum_losses) loss = exchange_.sum_losses(loss);
  step_losses_.push_back(loss / (schedule_.shape.microbatches * exchange_.copies));
  if (schedule_.forward_only || in_program_.updates || !schedule_.weights.empty()) return;
  if (!in_program_.reduces) reductions_.sum_all();
  if (exchange_.sum_replicas) exchange_.sum_replicas();
  weights_.update();
}

std::vector<PoolUse> GpuTraining::pools() const {
  std::vector<PoolUse> pools(layers_.size());
  for (std::size_t rank = 0; rank < pools.size(); ++rank)
    if (layers_[rank]) pools[rank] = {pools_.peaks()[rank], layers_[rank]->pool().reserved()};
  return pools;
}

std::vector<EpilogueUse> GpuTraining::epilogues() const {
  std::vector<EpilogueUse> uses;
  for (const std::optional<GpuLayers>& layers : layers_)
    for (const EpilogueUse& use : layers ? layers->epilogues() : std::vector<EpilogueUse>())
      if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
  return uses;
}

TrainingResult GpuTraining::result() const {
  TrainingResult result;
  result.losses = step_losses_;
  result.stages = weights_.download_weights();
  if (!step_losses_.empty()) result.gradients = weights_.download_gradients();
  return result;
}

}  // namespace bubblescope::exec
