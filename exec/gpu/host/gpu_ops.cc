// Runs ops as GPU launches, and counts the activations that they hold.
#include "exec/gpu/host/gpu_ops.h"

#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

LayerOptions layer_options_of(const DeviceOptions& device) {
  const bool is_float32 = device.precision == Precision::kFloat32;  // rounds like the host
  return {dtype_of(device.precision), device.attention, SmHint::kNothing,
          device.epilogue.value_or(is_float32 ? Epilogue::kSeparate : Epilogue::kFused)};
}

[[noreturn]] void refuse(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack + " is ready");
}

}  // namespace

GpuOps::GpuOps(const GpuMachine& machine, const JobRequest& job, const GpuShared& shared,
               const GpuOpsOptions& options)
    : schedule_(job.schedule),
      shared_(shared),
      model_(job.training->model),
      dtype_(dtype_of(job.device.precision)),
      layers_(static_cast<std::size_t>(machine.ranks())),
      states_(static_cast<std::size_t>(std::int64_t{job.schedule->stages()} *
                                       job.schedule->shape.microbatches *
                                       job.schedule->shape.slices)),
      contexts_(job.schedule),
      gradient_scale_(gradient_scale(job.schedule) / static_cast<float>(options.replicas)),
      updates_in_program_(options.updates_in_program) {
  for (std::int32_t rank = 0; rank < machine.ranks(); ++rank) {
    if (!machine.runs(rank)) continue;
    auto& layers = layers_[static_cast<std::size_t>(rank)].emplace(machine, rank,
                                                                   layer_options_of(job.device));
    if (options.order != nullptr) layers.stream.pool().set_order(*options.order);
  }
  for (const RankOrder& ops : schedule_.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute) state_of(op).recompute = schedule_.recompute(op.stage);
}

void GpuOps::begin_step() {
  for (std::optional<GpuLayers>& layers : layers_)
    if (layers) layers->stream.pool().forget_users();
}

void GpuOps::start(InstructionId id, const Op& op, void* stream) {
  instruction_ = id;
  layers_of(op).stream.set(stream);
}

void GpuOps::compute_forward(InstructionId id, const Op& op, void* stream) {
  start(id, op, stream);
  const GpuStage& stage = shared_.weights.read(op);
  GpuMicrobatch& state = state_of(op);
  const Slot next{Direction::kForward, op.stage + 1, op.microbatch, op.slice};
  const GpuMatrix output = stage.last ? GpuMatrix() : shared_.mailbox.outbox(next);
  const bool is_kept = !schedule_.forward_only && state.recompute != Recompute::kFull;
  GpuActivations saved =
      run_forward(layers_of(op), stage,
                  {input_of(op), shared_.data.tokens_of(op), output, context_of(op), is_kept});
  state.is_here = true;
  state.complete = state.recompute == Recompute::kNone;
  if (schedule_.forward_only) {
    drop(layers_of(op).stream, std::move(saved));
    return contexts_.free_if_unneeded(op, schedule_.shape.slices - 1, layers_of(op).stream);
  }
  if (state.recompute == Recompute::kFull) {
    drop(layers_of(op).stream, std::move(saved));
    state.input = input_of(op);
    return set_held(op, state.input.bytes() + context_bytes(op));
  }
  if (!state.complete) drop_attention(layers_of(op).stream, saved);
  set_held(op, saved.bytes() + context_bytes(op));
  state.saved = std::move(saved);
}

void GpuOps::recompute_forward(InstructionId id, const Op& op, void* stream) {
  start(id, op, stream);
  GpuMicrobatch& state = state_of(op);
  if (!state.is_here) refuse(op, "its input");
  const GpuStage& stage = shared_.weights.read(op);
  state.complete = true;
  if (state.recompute == Recompute::kSelective)
    make_attention(layers_of(op), stage, *state.saved, shared_.data.tokens_of(op).positions,
                   context_of(op));
  else
    state.saved = run_forward(layers_of(op), stage,
                              {input_of(op), shared_.data.tokens_of(op), {}, context_of(op)});
  set_held(op, state.saved->bytes() + context_bytes(op));
}

void GpuOps::compute_input_grad(InstructionId id, const Op& op, void* stream) {
  start(id, op, stream);
  const GpuStage& stage = shared_.weights.read(op);
  GpuMicrobatch& state = state_of(op);
  if (!state.saved || !state.complete || !state.is_here)
    refuse(op, "the complete result of its forward");
  const auto slot = [&](std::int32_t reader) {
    return Slot{Direction::kBackward, reader, op.microbatch, op.slice};
  };
  const GpuMatrix output_grad = stage.last ? GpuMatrix() : shared_.mailbox.inbox(slot(op.stage));
  const GpuMatrix input_grad =
      stage.first ? GpuMatrix() : shared_.mailbox.outbox(slot(op.stage - 1));
  state.work = run_input_grad(layers_of(op), stage,
                              {*state.saved, shared_.data.tokens_of(op), output_grad, input_grad,
                               gradient_scale_, context_of(op)});
  state.saved.reset();
  contexts_.free_if_unneeded(op, 0, layers_of(op).stream);
  set_held(op, state.work->bytes());
}

void GpuOps::compute_weight_grad(InstructionId id, const Op& op, void* stream) {
  start(id, op, stream);
  GpuMicrobatch& state = state_of(op);
  if (!state.work) refuse(op, "its input gradient");
  const StageReplica replica = shared_.weights.stage_replicas().find(op);
  run_weight_grad(layers_of(op), shared_.weights.stage(replica), *state.work,
                  shared_.data.tokens_of(op));
  state.work.reset();
  set_held(op, 0);
  if (shared_.weights.writes(op) && !updates_in_program_) shared_.weights.update(replica, stream);
}

/// The memory that an EVICT copies away.
GpuBuffers GpuOps::release_evicted(InstructionId id, const Op& evict) {
  instruction_ = id;
  GpuMicrobatch& state = state_of(evict);
  if (!std::exchange(state.is_here, false)) refuse(evict, "the result of its forward");
  GpuBuffers left = release_for_evict(layers_of(evict).stream.pool(), state.kept());
  set_held(evict, context_bytes(evict));
  return left;
}

/// The memory to which a LOAD copies back.
GpuBuffers GpuOps::acquire_loaded(InstructionId id, const Op& load) {
  instruction_ = id;
  GpuMicrobatch& state = state_of(load);
  if (std::exchange(state.is_here, true)) refuse(load, "its evicted copy");
  GpuBuffers room = acquire_for_load(layers_of(load).stream.pool(), state.kept());
  set_held(load, bytes_of(room) + context_bytes(load));
  return room;
}

/// Sets the bytes that the micro-batch holds on its rank.
void GpuOps::set_held(const Op& op, Bytes bytes) {
  shared_.held.change(instruction_, static_cast<std::int32_t>(rank_of(op)),
                      bytes - std::exchange(state_of(op).held, bytes));
}

std::size_t GpuOps::rank_of(const Op& op) const {
  return static_cast<std::size_t>(schedule_.rank_of(op.stage, op.microbatch));
}

GpuMicrobatch& GpuOps::state_of(const Op& op) {
  const std::int64_t forwards = std::int64_t{schedule_.shape.microbatches} * schedule_.shape.slices;
  return states_[static_cast<std::size_t>(op.stage * forwards + schedule_.forward_index(op))];
}

GpuMatrix GpuOps::input_of(const Op& op) const {
  if (schedule_.is_first(op.stage)) return {};
  return shared_.mailbox.inbox({Direction::kForward, op.stage, op.microbatch, op.slice});
}

/// A slice's own share of the context, which counts with the slice.
Bytes GpuOps::context_bytes(const Op& op) const {
  const Bytes floats = bubblescope::exec::context_bytes(model_, schedule_.shape.slices, op.slice);
  return floats / entry_bytes(kBubblescopeFloat32) * entry_bytes(dtype_);
}

}  // namespace bubblescope::exec
