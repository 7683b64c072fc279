// Times the host's GEMMs and copies by its monotonic clock.
#include "exec/training/host_bench.h"

#include <cstring>
#include <vector>

#include "exec/runtime/host.h"
#include "exec/runtime/step_clock.h"
#include "exec/training/blas.h"
#include "exec/training/matrix.h"

namespace bubblescope::exec {

namespace {

constexpr float kEntry = 0.5F;  // GEMMs of zeros may take less time

Matrix filled(double rows, double columns) {
  Matrix matrix(static_cast<std::int32_t>(rows), static_cast<std::int32_t>(columns));
  matrix.values.assign(matrix.values.size(), kEntry);
  return matrix;
}

template <class Run>
Nanos time(std::int64_t times, const Run& run) {
  const Nanos begin = read_monotonic_clock();
  for (std::int64_t at = 0; at < times; ++at) run();
  return read_monotonic_clock() - begin;
}

class HostBench : public KernelBench {
 public:
  HostBench() { device = "one core of " + describe_host() + ", float32, " + load_blas().name; }

  Nanos run_gemm(const GemmShape& shape, std::int64_t times) override {
    prepare(shape);
    switch (shape.pass) {
      case GemmPass::kForward:
        return time(times,
                    [&] { multiply(whole(input_), transposed(whole(weight_)), onto(output_)); });
      case GemmPass::kInputGrad:
        return time(times, [&] { multiply(whole(output_), whole(weight_), onto(input_)); });
      case GemmPass::kWeightGrad:
        return time(times, [&] {
          multiply(transposed(whole(output_)), whole(input_), onto(weight_), {.add = true});
        });
    }
    return 0;
  }

  Nanos run_copy(Bytes bytes, std::int64_t times) override {
    const auto size = static_cast<std::size_t>(bytes);
    from_.resize(size, 1);
    to_.resize(size);
    return time(times, [&] { std::memcpy(to_.data(), from_.data(), size); });
  }

 private:
  void prepare(const GemmShape& shape) {
    if (shape == prepared_) return;
    input_ = filled(shape.rows, shape.inputs);
    weight_ = filled(shape.outputs, shape.inputs);
    output_ = filled(shape.rows, shape.outputs);
    prepared_ = shape;
  }

  GemmShape prepared_ = {GemmPass::kForward, 0, 0, 0};
  Matrix input_;
  Matrix weight_;
  Matrix output_;
  std::vector<char> from_;
  std::vector<char> to_;
};

}  // namespace

std::unique_ptr<KernelBench> open_host_bench() { return std::make_unique<HostBench>(); }

}  // namespace bubblescope::exec
