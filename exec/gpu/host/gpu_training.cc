// Runs the ops of a schedule as GPU launches.
#include "exec/gpu/host/gpu_training.h"

#include <algorithm>
#include <utility>

#include "exec/training/expect_trainable.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// GPUs have more limits than the host.
void expect_trainable_on_gpus(const JobRequest& job, std::int32_t replicas) {
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
  if (!schedule->weights.empty() && replicas > 1)
    throw Error(schedule->name +
                " updates without flushes, but copies of the pipeline sum their gradients after "
                "a step: start as many processes as ranks");
}

/// The options of a job that GPUs can train. Throws Error for others.
const TrainingOptions& find_training(const JobRequest& job, std::int32_t replicas) {
  expect_trainable_on_gpus(job, replicas);
  return *job.training;
}

/// With several processes, NCCL reduces the gradients: after the step for replicas of the pipeline,
/// whose updates then follow the step, as they do where a process has several replicas of a stage.
ProgramUpdates find_in_program(const JobRequest& job, const GpuExchange& exchange,
                               bool has_replicas) {
  const ProgramUpdates in_program = find_program_updates(job.schedule, job.program);
  if (!exchange.sum_replicas) return in_program;
  return {false, in_program.updates && exchange.replicas == 1 && !has_replicas};
}

/// The layers of all ranks are alike.
TrainingIdentity identify_layers(const std::vector<std::optional<GpuLayers>>& layers) {
  for (const std::optional<GpuLayers>& of_rank : layers)
    if (of_rank) return of_rank->computed_by;
  return {};
}

/// The order of instructions, if a rank's memory is used on several streams.
std::optional<HappensBefore> find_order(const JobRequest& job) {
  if (job.schedule->offload_target_of_rank.empty()) return std::nullopt;
  return HappensBefore(job.program);
}

}  // namespace

GpuTraining::GpuTraining(const GpuMachine& machine, const JobRequest& job, GpuExchange exchange)
    : machine_(machine),
      schedule_(job.schedule),
      program_(job.program),
      options_(find_training(job, exchange.replicas)),
      exchange_(std::move(exchange)),
      order_(find_order(job)),
      weights_(machine, job.schedule, options_, dtype_of(job.device.precision)),
      reductions_(machine, job.schedule, weights_),
      mailbox_(machine, job.schedule, options_.model, dtype_of(job.device.precision)),
      data_(machine, job.schedule, options_),
      evictions_(machine, job),
      in_program_(find_in_program(job, exchange_, reductions_.has_replicas())),
      held_(job.program.size(), machine.ranks()),
      pools_(held_),
      ops_(machine, job, {weights_, mailbox_, data_, held_},
           {exchange_.replicas, in_program_.updates, order_ ? &*order_ : nullptr}),
      computed_by_(identify_layers(ops_.layers())) {
  if (order_) evictions_.set_order(*order_);
}

void GpuTraining::begin_step() {
  data_.upload(static_cast<std::int32_t>(step_losses_.size()), exchange_.replica);
  weights_.begin_step();
  reductions_.begin_step();
  evictions_.forget_users();
  ops_.begin_step();
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
  const Bytes before = begin_pool_use(id);
  if (op.kind == OpKind::kForward) ops_.compute_forward(id, op, stream);
  if (op.kind == OpKind::kRecompute) ops_.recompute_forward(id, op, stream);
  if (gives_input_grad(op.kind)) ops_.compute_input_grad(id, op, stream);
  if (makes_weight_grad(op.kind)) ops_.compute_weight_grad(id, op, stream);
  if (op.kind == OpKind::kEvict) {
    const GpuBuffers from = ops_.release_evicted(id, op);
    evictions_.copy(acquire_offloaded(id, from), from, stream);
  }
  if (op.kind == OpKind::kLoad)
    evictions_.copy(ops_.acquire_loaded(id, op), release_offloaded(id), stream);
  if (op.kind == OpKind::kOptimizer && in_program_.updates)
    weights_.update(replica_of(instruction), stream);
  end_pool_use(id, before);
}

/// Begins to record what an instruction allocates and frees, and its peak. Returns what the pool of
/// its rank holds before.
Bytes GpuTraining::begin_pool_use(InstructionId id) {
  held_.begin(id);
  ActivationPool& pool = pool_of(id);
  pool.set_user(id);
  pool.reset_peak();
  return pool.held();
}

void GpuTraining::end_pool_use(InstructionId id, Bytes before) {
  const std::int32_t rank = program_.instructions[id].rank;
  const ActivationPool& pool = pool_of(id);
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
  const Bytes before = begin_pool_use(id);
  GpuBuffers buffers =
      evicts ? ops_.release_evicted(id, copy.op) : ops_.acquire_loaded(id, copy.op);
  end_pool_use(id, before);
  return buffers;
}

/// A post publishes this rank's gradients, the work adds them up, and a join only waits.
void GpuTraining::reduce(const Instruction& reduction, void* stream) {
  if (!in_program_.reduces || reduction.lane == kNoLane) return;
  if (reduction.role == Role::kPost)
    return reductions_.post_gradients(replica_of(reduction), stream);
  reductions_.sum_gradients(replica_of(reduction), stream);
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

void GpuTraining::finish_step(const MemoryTracker::Times& times) {
  held_.note_step(times);
  pools_.note_step(times);
  double loss = data_.sum_losses();
  if (exchange_.sum_losses) loss = exchange_.sum_losses(loss);
  step_losses_.push_back(loss / (schedule_.shape.microbatches * exchange_.replicas));
  if (schedule_.forward_only || in_program_.updates || !schedule_.weights.empty()) return;
  if (!in_program_.reduces) reductions_.sum_all();
  if (exchange_.sum_replicas) exchange_.sum_replicas();
  weights_.update();
}

std::vector<PoolUse> GpuTraining::pools() const {
  std::vector<PoolUse> pools(ops_.layers().size());
  for (std::size_t rank = 0; rank < pools.size(); ++rank)
    if (ops_.layers()[rank])
      pools[rank] = {pools_.peaks()[rank], ops_.layers()[rank]->stream.pool().reserved()};
  return pools;
}

std::vector<EpilogueUse> GpuTraining::epilogues() const {
  std::vector<EpilogueUse> uses;
  for (const std::optional<GpuLayers>& layers : ops_.layers())
    for (const EpilogueUse& use : layers ? layers->gelu.uses() : std::vector<EpilogueUse>())
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
