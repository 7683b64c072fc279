// Times work on streams.
#include "tests/support/gpu_speed.h"

#include <functional>
#include <utility>
#include <variant>

#include "exec/gpu/host/gpu_gate.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/gpu_layers.h"
#include "exec/gpu/host/gpu_training.h"
#include "exec/runtime/execute.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/quantile.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {

namespace {

constexpr int kWarmups = 2;
constexpr int kRepetitions = 5;
constexpr int kGemmsAtOnce = 20;
constexpr std::int32_t kMicrobatches = 8;

/// Times work on a stream; a gate holds it back until it is enqueued completely.
class StopWatch {
 public:
  StopWatch(const exec::GpuMachine& machine, const exec::GpuHandle& stream)
      : gpu_(machine.gpu()),
        device_(machine.place(0).device),
        stream_(stream),
        gate_(gpu_),
        begin_(gpu_.create_event(device_, exec::EventUse::kTimed)),
        end_(gpu_.create_event(device_, exec::EventUse::kTimed)) {}

  Nanos time(const std::function<void()>& enqueue) {
    std::vector<Nanos> times;
    for (int at = 0; at < kWarmups + kRepetitions; ++at) {
      // In the first round the gate is open, because loading kernels and allocating memory must not
      // wait for it.
      at == 0 ? gate_.open() : gate_.close();
      gate_.hold(stream_);
      gpu_.record(begin_, stream_);
      enqueue();
      gpu_.record(end_, stream_);
      if (at > 0) gate_.expect_held_back(begin_, "while work was enqueued");
      gate_.open();
      gpu_.await_device(device_);
      if (at >= kWarmups) times.push_back(gpu_.elapsed(begin_, end_));
    }
    return quantile(std::move(times), 50);
  }

 private:
  const exec::GpuRuntime& gpu_;
  std::int32_t device_;
  const exec::GpuHandle& stream_;
  exec::GpuGate gate_;
  exec::GpuHandle begin_;
  exec::GpuHandle end_;
};

/// The shape of a GEMM: (rows x inner) * (inner x columns).
struct GemmSize {
  std::string name;
  std::int32_t rows;
  std::int32_t inner;
  std::int32_t columns;
  bool left_turned = false;
  bool right_turned = false;
  bool adds_up = false;  ///< accumulates into a float32 target
};

/// The GEMMs of gpu_stage.h.
std::vector<GemmSize> sizes_of(const exec::TransformerShape& model) {
  const std::int32_t rows = model.rows();
  const auto [width, inner] = std::pair(model.width, static_cast<std::int32_t>(model.inner()));
  std::vector<GemmSize> sizes;
  const auto add = [&](const std::string& name, std::int32_t in, std::int32_t out) {
    sizes.push_back({name + " forward", rows, in, out});
    sizes.push_back({name + " input gradient", rows, out, in, false, true});
    sizes.push_back({name + " weight gradient", in, rows, out, true, false, true});
  };
  add("qkv", width, 3 * width);
  add("out", width, width);
  add("up", width, inner);
  add("down", inner, width);
  return sizes;
}

/// Layers on a stream of rank 0, and matrices with values: a device is faster on zeros.
class DrawnLayers {
 public:
  DrawnLayers(const exec::GpuMachine& machine, const exec::GpuHandle& stream,
              const exec::LayerOptions& options)
      : gpu_(machine.gpu()), stream_(stream.get()), layers_(machine, 0, options) {
    layers_.stream.set(stream_);
  }

  exec::GpuLayers* operator->() { return &layers_; }

  exec::GpuMatrix draw(std::int32_t rows, std::int32_t columns) {
    const exec::GpuMatrix matrix = layers_.stream.make(rows, columns);
    const bool is_float = matrix.dtype == kBubblescopeFloat32;
    launch(matrix, exec::DrawArguments{is_float ? matrix.floats() : nullptr,
                                       is_float ? nullptr : matrix.data, ++drawn_, 1, 0});
    return matrix;
  }

  void launch(const exec::GpuMatrix& shape, const exec::KernelArguments& arguments) const {
    gpu_.launch({shape.dtype, shape.rows, shape.columns, arguments}, stream_);
  }

  void copy(const exec::GpuMatrix& to, const exec::GpuMatrix& from) const {
    gpu_.copy(to.data, from.data, static_cast<std::size_t>(from.bytes()), stream_);
  }

 private:
  const exec::GpuRuntime& gpu_;
  void* stream_;
  exec::GpuLayers layers_;
  std::uint64_t drawn_ = 0;
};

Nanos time_gemm(DrawnLayers& layers, StopWatch& watch, const GemmSize& size) {
  const exec::GpuMatrix left =
      size.left_turned ? layers.draw(size.inner, size.rows) : layers.draw(size.rows, size.inner);
  const exec::GpuMatrix right = size.right_turned ? layers.draw(size.columns, size.inner)
                                                  : layers.draw(size.inner, size.columns);
  exec::GpuMatrix target =
      layers->stream.make(size.rows, 2 * size.columns);  // large enough for float32
  target.columns = size.columns;
  if (size.adds_up) target.dtype = kBubblescopeFloat32;
  const Nanos time = watch.time([&] {
    for (int at = 0; at < kGemmsAtOnce; ++at)
      layers->stream.multiply({left, size.left_turned}, {right, size.right_turned}, target,
                              size.adds_up ? target : exec::GpuMatrix());
  });
  return time / kGemmsAtOnce;
}

/// Norms of more rows than a cache holds, and the softmax of 64 heads.
std::vector<LayerSpeed> time_row_layers(DrawnLayers& layers, StopWatch& watch,
                                        const exec::TransformerShape& model) {
  const exec::GpuMatrix input = layers.draw(16 * model.sequence, model.width);
  const exec::GpuMatrix grad = layers.draw(input.rows, input.columns);
  const exec::GpuMatrix target = layers.draw(input.rows, input.columns);
  const exec::GpuMatrix gain = layers.draw(1, input.columns);
  const exec::GpuMatrix inverses = layers.draw(1, 2 * input.rows);  // large enough for float32
  const exec::GpuMatrix weights = layers.draw(64 * model.sequence, model.sequence);
  const exec::GpuMatrix scores = layers.draw(weights.rows, weights.columns);
  const auto bytes = static_cast<double>(input.bytes());
  const auto all_scores = static_cast<double>(scores.bytes());
  std::vector<LayerSpeed> speeds;
  const auto add = [&](const std::string& name, double moved, const auto& enqueue) {
    speeds.push_back({name, watch.time(enqueue), moved, 0});
  };
  add("copy", 2 * bytes, [&] { layers.copy(target, input); });
  add("norm", 2 * bytes, [&] {
    layers.launch(input, exec::NormArguments{target.data, input.data, gain.data});
  });
  add("norm gradient", 3 * bytes, [&] {
    layers.launch(input, exec::NormGradArguments{target.data, input.data, gain.data, grad.data,
                                                 nullptr, inverses.floats()});
  });
  // A row is read up to the diagonal, half of it on average, and written to its end.
  add("causal softmax", 1.5 * all_scores, [&] {
    layers.launch(scores, exec::CausalSoftmaxArguments{scores.data, model.sequence});
  });
  add("softmax gradient", 3 * all_scores, [&] {
    layers.launch(scores, exec::SoftmaxGradArguments{scores.data, weights.data});
  });
  for (const exec::GpuMatrix& each : {input, grad, target, gain, inverses, weights, scores})
    layers->stream.drop(each);
  return speeds;
}

/// Flash attention of some sequences. A backward has five GEMMs of the forward's two, and half of
/// every product is masked.
std::vector<LayerSpeed> time_attention(DrawnLayers& layers, StopWatch& watch,
                                       const exec::AttentionShape& shape) {
  const std::int32_t rows = shape.batch * shape.sequence;
  const std::int32_t width = shape.heads * shape.head_width;
  const exec::GpuMatrix qkv = layers.draw(rows, 3 * width);
  const exec::GpuMatrix qkv_grad = layers.draw(rows, 3 * width);
  const exec::GpuMatrix mixed_grad = layers.draw(rows, width);
  const exec::AttentionOutput output = layers->attention.attend(qkv, shape);
  const double product = double{1} * rows * shape.sequence * width / 2;
  const std::string name = "flash attention of heads " + std::to_string(shape.head_width) + " wide";
  LayerSpeed forward{name, 0, 0, 2 * product};
  forward.time = watch.time([&] {
    const exec::AttentionOutput again = layers->attention.attend(qkv, shape);
    layers->stream.drop(again.weights);
    layers->stream.drop(again.mixed);
  });
  LayerSpeed backward{name + ", gradient", 0, 0, 5 * product};
  backward.time = watch.time([&] {
    layers->attention.pull_back({qkv, output.weights, output.mixed, mixed_grad, qkv_grad}, shape);
  });
  for (const exec::GpuMatrix& each : {qkv, qkv_grad, mixed_grad, output.weights, output.mixed})
    layers->stream.drop(each);
  return {forward, backward};
}

Nanos time_step(const BubblescopeGpu& calls, const exec::JobRequest& request) {
  const exec::Job job = exec::start_gpu_job(calls, request, {});
  const exec::Execution execution = exec::execute(request.program, *job.backend, "cuda",
                                                  {kWarmups, kRepetitions, job.after_step});
  if (execution.breakdown) throw Error(execution.breakdown->fault, execution.breakdown->message);
  return compute_makespan(exec::median_step(execution.steps));
}

Nanos time_back_to_back(const BubblescopeGpu& calls, const exec::JobRequest& request) {
  const exec::GpuMachine machine(calls, 1, exec::Share::kGreen);
  exec::GpuTraining training(machine, request);
  training.begin_step();
  const exec::GpuHandle stream = machine.gpu().create_stream(0, machine.partition(0));
  StopWatch watch(machine, stream);
  return watch.time([&] {
    for (InstructionId id = 0; id < request.program.size(); ++id)
      training.enqueue(id, stream.get());
  });
}

}  // namespace

std::vector<GemmSpeed> time_gemms(const BubblescopeGpu& calls, std::int32_t ranks,
                                  const exec::TransformerShape& model, exec::Precision precision) {
  const exec::GpuMachine machine(calls, ranks, exec::Share::kGreen);
  const exec::GpuHandle stream = machine.gpu().create_stream(0, machine.partition(0));
  DrawnLayers layers(machine, stream, {exec::dtype_of(precision)});
  DrawnLayers with_sm_count(
      machine, stream,
      {exec::dtype_of(precision), exec::Attention::kSoftmax, exec::SmHint::kMultiprocessors});
  StopWatch watch(machine, stream);
  std::vector<GemmSpeed> speeds;
  for (const GemmSize& size : sizes_of(model)) {
    GemmSpeed speed{size.name, time_gemm(layers, watch, size)};
    speed.with_sm_count = time_gemm(with_sm_count, watch, size);
    speed.plain = time_gemm(layers, watch, {size.name, size.rows, size.inner, size.columns});
    speed.multiplications = double{1} * size.rows * size.inner * size.columns;
    speeds.push_back(speed);
  }
  return speeds;
}

std::vector<LayerSpeed> time_layers(const BubblescopeGpu& calls,
                                    const exec::TransformerShape& model) {
  const exec::GpuMachine machine(calls, 1, exec::Share::kGreen);
  const exec::GpuHandle stream = machine.gpu().create_stream(0, machine.partition(0));
  StopWatch watch(machine, stream);
  DrawnLayers layers(machine, stream, {kBubblescopeBfloat16, exec::Attention::kFlash});
  std::vector<LayerSpeed> speeds = time_row_layers(layers, watch, model);
  for (const std::int32_t head_width : {64, 128})
    if (head_width <= model.width)
      for (const LayerSpeed& speed :
           time_attention(layers, watch, {4, model.sequence, model.width / head_width, head_width}))
        speeds.push_back(speed);
  return speeds;
}

EpilogueSpeed time_epilogues(const BubblescopeGpu& calls, std::int32_t ranks,
                             const exec::TransformerShape& model) {
  const exec::GpuMachine machine(calls, ranks, exec::Share::kGreen);
  const exec::GpuHandle stream = machine.gpu().create_stream(0, machine.partition(0));
  StopWatch watch(machine, stream);
  EpilogueSpeed speed;
  for (const exec::Epilogue epilogue : {exec::Epilogue::kFused, exec::Epilogue::kSeparate}) {
    exec::GpuLayers layers(
        machine, 0,
        {kBubblescopeBfloat16, exec::Attention::kSoftmax, exec::SmHint::kNothing, epilogue});
    layers.stream.set(stream.get());
    const exec::GpuMatrix input = layers.stream.make(model.rows(), model.width);
    const exec::GpuMatrix up = layers.stream.make(model.width, model.inner());
    const exec::GpuMatrix down = layers.stream.make(model.inner(), model.width);
    Nanos& time = epilogue == exec::Epilogue::kFused ? speed.fused : speed.separate;
    time = watch.time([&] {
      const exec::GeluOutput output = layers.gelu.gemm({input}, {up});
      layers.stream.drop(layers.gelu.gemm_grad({input}, exec::transposed(down), output.before));
      layers.stream.drop(output.before);
      layers.stream.drop(output.after);
    });
    for (const exec::EpilogueUse& use : layers.gelu.uses()) speed.unknown += use.is_fused ? 0 : 1;
  }
  return speed;
}

ExecutorSpeed time_executor(const BubblescopeGpu& calls, const exec::TrainingOptions& options,
                            const exec::DeviceOptions& device) {
  const Schedule schedule =
      build_schedule(find_schedule("zb-h1"), {{1, 1, kMicrobatches, 1, {}}, {}, {}});
  const Program program = std::get<Program>(lower(schedule));
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, device};
  return {time_step(calls, request), time_back_to_back(calls, request)};
}

}  // namespace bubblescope::tests
